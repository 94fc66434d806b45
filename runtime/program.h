/* Running the program of a context, as `python3 SCRIPT | -c CODE | -m MODULE` would. */
#ifndef RUNTIME_PROGRAM_H
#define RUNTIME_PROGRAM_H

#include "runtime/pyapi.h"

/* Runs what the command line in `config` (read by PyConfig_Read) names, in __main__.  The result is
 * the exit status.  No path leads to the end of the process, and the program's tracebacks have no
 * frame of ours.  `index` is the context's number, for the head of a traceback. */
int pyrt_program_run(const struct pyrt_api *py, union pyrt_config *config, int index);

/* Joins the program's non-daemon threads, as finalisation would. */
void pyrt_program_join_threads(const struct pyrt_api *py);

#endif
