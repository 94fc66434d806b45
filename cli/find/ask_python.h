/* Asking a Python where its libpython is. */
#ifndef CLI_ASK_PYTHON_H
#define CLI_ASK_PYTHON_H

#include <jansson.h>

/* {"name","major","minor","flags","exe","libs":[],"dirs":[]} as the interpreter `python`, on PATH
 * unless it is a path, or a launcher and its option, "py -3.11", tells; NULL if there is none or it does not answer. */
json_t *cli_ask_python(const char *python);

#endif
