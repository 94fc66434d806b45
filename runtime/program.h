/* Runs the program of a context as `python3 SCRIPT | -c CODE | -m MODULE` does. */
#ifndef RUNTIME_PROGRAM_H
#define RUNTIME_PROGRAM_H

#include "runtime/command.h"
#include "runtime/pyapi.h"

/* Runs the program in __main__, with the arguments of its command line, and returns its exit
 * status, or -SIGINT if KeyboardInterrupt ended it.  Never ends the process; tracebacks of the
 * program show no frame of this library. `index` is the context's number, which is printed above
 * a traceback. */
int pyrt_program_run(const struct pyrt_api *py, const struct pyrt_program *program,
                     const struct pyrt_command *command, int index);

/* Joins the program's non-daemon threads, as finalisation would. */
void pyrt_program_join_threads(const struct pyrt_api *py);

#endif
