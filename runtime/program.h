/* Runs the program of a context as `python3 SCRIPT | -c CODE | -m MODULE` does. */
#ifndef RUNTIME_PROGRAM_H
#define RUNTIME_PROGRAM_H

#include "runtime/pyapi.h"

/* Runs the program that the command line in `config` (read by PyConfig_Read) names, in __main__,
 * and returns its exit status.  Never ends the process; tracebacks of the program show no frame of
 * this library.  `index` is the context's number, which is printed above a traceback. */
int pyrt_program_run(const struct pyrt_api *py, union pyrt_config *config, int index);

/* Joins the program's non-daemon threads, as finalisation would. */
void pyrt_program_join_threads(const struct pyrt_api *py);

#endif
