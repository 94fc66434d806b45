/* The environment variables that quirk rules ask for (POSIX). */
#ifndef CLI_FIND_QUIRK_ENV_H
#define CLI_FIND_QUIRK_ENV_H

#include "cli/args/option.h"

/* Sets the variables of every rule that applies to a library below the interpreter's sys.path;
 * variables that are set already stay.  `files` are those of --quirks.  Before any thread starts.
 * CLI_OK, or CLI_FAILED with a message. */
int cli_set_quirk_environment(const struct cli_values *files, const char *python);

#endif
