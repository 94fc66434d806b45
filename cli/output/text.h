/* Text that is safe to show on a terminal, and its style. */
#ifndef CLI_OUTPUT_TEXT_H
#define CLI_OUTPUT_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Decodes one UTF-8 character at `s` and returns its length, or 0 if it is not valid UTF-8. */
size_t cli_utf8(const char *s, uint32_t *code);

/* Writes `text`; control characters become \n, \xHH or \uHHHH, bytes that are not UTF-8 \xHH. */
void cli_put(FILE *f, const char *text);

/* Like cli_put, but returns a new string that the caller frees; NULL when out of memory. */
char *cli_safe(const char *text);

enum cli_style { CLI_PLAIN, CLI_BOLD, CLI_DIM, CLI_RED, CLI_GREEN, CLI_YELLOW };

/* The escape sequence that switches to a style; "" unless `f` is a terminal with colour enabled
 * (NO_COLOR is unset or empty). */
const char *cli_style(FILE *f, enum cli_style style);

#endif
