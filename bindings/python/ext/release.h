/* Memory of the main interpreter that contexts use, and its release by a thread of its own: whoever
 * lets go of it may be in a context, and must not wait. */
#ifndef BINDINGS_PYTHON_EXT_RELEASE_H
#define BINDINGS_PYTHON_EXT_RELEASE_H

#include "bindings/python/ext/python.h"

struct pkg_export {
    Py_buffer view;
    struct pkg_export *next;
};

/* With the GIL: starts the thread, unless there is one.  0: with an exception. */
int pkg_release_start(void);
/* What the thread is to do when it is rung, beside releasing; with the GIL. */
void pkg_release_also(void (*function)(void));
/* Has it do that soon; any thread, never waits. */
void pkg_release_ring(void);

/* With the GIL.  NULL: with an exception. */
struct pkg_export *pkg_release_new(PyObject *exporter);
void pkg_release_now(struct pkg_export *e);
/* Any thread, with or without any GIL; never waits. */
void pkg_release_later(void *e);
/* Round a call of a context, or what lets go of memory, both with the GIL: what this thread lets go
 * of meanwhile is released by the second one, and not by another thread. */
int *pkg_release_begin(void);
void pkg_release_end(int *begun); /* what the first one returned */
/* With the GIL: ends the thread; what is let go of later is not released any more. */
void pkg_release_stop(void);
void pkg_release_forked(void);

#endif
