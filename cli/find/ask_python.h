/* Asking a Python where its libpython is. */
#ifndef CLI_FIND_ASK_PYTHON_H
#define CLI_FIND_ASK_PYTHON_H

#include <stdbool.h>

#include <jansson.h>

/* Runs `python`, a path, a name on PATH or a launcher with an option ("py -3.11"), and returns
 * {"name","major","minor","flags","exe","libs":[],"dirs":[]}, which the caller releases.  NULL if
 * there is no such interpreter (*is_there is false then) or it does not answer. */
json_t *cli_ask_python(const char *python, bool *is_there);

#endif
