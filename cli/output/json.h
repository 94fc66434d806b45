/* JSON output.  Names may hold bytes that are not UTF-8, which JSON cannot.  As the program's
 * memory never runs out unnoticed (cli/os/memory.h), no value is NULL, and none lacks a member. */
#ifndef CLI_OUTPUT_JSON_H
#define CLI_OUTPUT_JSON_H

#include <jansson.h>

#include <extisolate.h>

/* Gives jansson the program's memory; call it before anything else here. */
void cli_json_start(void);

/* A JSON string in which bytes that are not UTF-8 are spelled \xHH; JSON null for NULL. */
json_t *cli_json_text(const char *text);

/* {"code","file","offset","os_error","message"}; `file` as for cli_error. */
json_t *cli_json_error(const struct exti_error *err, const char *file);

/* Prints `value` and a line break on stdout, and releases it.  Returns CLI_OK, or CLI_FAILED after
 * printing an error. */
int cli_json_print(json_t *value);

#endif
