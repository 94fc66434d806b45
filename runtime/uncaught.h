/* How a program's last exception ends a context. */
#ifndef RUNTIME_UNCAUGHT_H
#define RUNTIME_UNCAUGHT_H

#include "runtime/pyapi.h"

/* Takes the exception that is set and returns the exit status it stands for: SystemExit's code, 130
 * for KeyboardInterrupt, else 1, after sys.excepthook has shown it.  CPython's own PyErr_Print is
 * of no use here: it ends the process on SystemExit. */
int pyrt_uncaught(const struct pyrt_api *py, int index);

#endif
