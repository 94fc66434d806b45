/* Turns an uncaught exception into an exit status. */
#ifndef RUNTIME_UNCAUGHT_H
#define RUNTIME_UNCAUGHT_H

#include "runtime/pyapi.h"

/* Clears the exception that is set and returns its exit status: SystemExit's code or, after
 * sys.excepthook has shown it, -SIGINT for KeyboardInterrupt and 1 for others.  CPython's own
 * PyErr_Print would end the process on SystemExit. */
int pyrt_uncaught(const struct pyrt_api *py, int index);

#endif
