/* Calls of one interpreter by another. */
#ifndef BINDINGS_PYTHON_EXT_CALLS_H
#define BINDINGS_PYTHON_EXT_CALLS_H

#include "bindings/python/ext/state.h"

/* Makes a call, and clears what is given.  Returns -1 with an exception; else the answer is the
 * caller's to clear.  Its memory outlives the interpreter that it is of. */
int pkg_calls_make(uint64_t id, struct pkg_call *call);

/* The same on a thread without a GIL; clears nothing. */
int pkg_calls_send(uint64_t id, struct pkg_call *call, struct exti_error *err);

#endif
