/* Gates, at which a thread waits until another one opens them.
 *
 * Who waits has let go of its GIL, and needs it as soon as the gate opens.  A thread that opens it
 * with the GIL has that thread woken only to wait again.  So a thread that will wait itself before
 * long, as a worker does for its next task, opens gates then, when it has let go of the GIL. */
#ifndef BINDINGS_PYTHON_EXT_GATES_H
#define BINDINGS_PYTHON_EXT_GATES_H

#include "bindings/python/ext/python.h"

struct pkg_gate;

/* The calling thread's own, which is closed; NULL: out of memory.  It is freed when the thread
 * ends. */
struct pkg_gate *pkg_gates_own(void);

/* Any thread, with the GIL or without.  It is open for one passage. */
void pkg_gate_open(struct pkg_gate *gate);

/* Waits at the calling thread's own gate.  Opens those that the thread was to open, once it has let
 * go of the GIL. */
void pkg_gates_wait(struct pkg_gate *own);

/* From now on the thread, which has a gate of its own, opens others when it waits at that, or is
 * told to, or ends; or at once as other threads do. */
void pkg_gates_defer(int defers);
void pkg_gates_open_deferred(void);

/* Adds the class Gate to the module; -1: with an exception. */
int pkg_gates_add(PyObject *module);

#endif
