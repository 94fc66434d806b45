/* The rules of --quirks files. */
#ifndef CLI_ARGS_QUIRKS_H
#define CLI_ARGS_QUIRKS_H

#include <extisolate.h>

#include "cli/args/option.h"

/* Opens the built-in rules and those of `files`.  On failure prints a message, fills `err` too and
 * returns CLI_FAILED. */
int cli_open_quirks(const struct cli_values *files, struct exti_quirks **out,
                    struct exti_error *err);

#endif
