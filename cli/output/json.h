/* JSON output.  Names may hold bytes that are not UTF-8, which JSON cannot. */
#ifndef CLI_OUTPUT_JSON_H
#define CLI_OUTPUT_JSON_H

#include <jansson.h>

#include <extisolate.h>

/* A JSON string in which bytes that are not UTF-8 are spelled \xHH; JSON null for NULL. */
json_t *cli_json_text(const char *text);

/* {"code","file","offset","os_error","message"}; `file` as for cli_error. */
json_t *cli_json_error(const struct exti_error *err, const char *file);

/* Prints `value` and a line break on stdout, and releases it; NULL means out of memory.  Returns
 * CLI_OK, or CLI_FAILED after printing an error. */
int cli_json_print(json_t *value);

#endif
