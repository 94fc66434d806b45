/* The heap of the interpreter that this copy of the module is in. */
#ifndef BINDINGS_PYTHON_EXT_OWN_H
#define BINDINGS_PYTHON_EXT_OWN_H

#include "bindings/python/ext/python.h"

#include "bindings/python/ext/object.h"
#include "bindings/python/ext/state.h"

/* Made when it is first asked for.  NULL: with an exception. */
struct pkg_heap *pkg_own_heap(void);

/* The handle of an object, with a reference; NULL: with an exception. */
struct pkg_object *pkg_own_handle(PyObject *object);
/* The object of a handle of this heap; NULL: with an exception, if it has ended. */
PyObject *pkg_own_object(const struct pkg_object *handle);

/* Lets go of objects whose handles were released; leaves the exception that is set. */
void pkg_own_settle(void);
/* The same if there are any; in line, as each call does it. */
static inline void pkg_own_settle_rung(void)
{
    if (pkg_state.heap && atomic_load_explicit(&pkg_state.heap->due, memory_order_relaxed))
        pkg_own_settle();
}
/* The same for who was rung (pkg_heap.ring). */
void pkg_own_settle_asked(void);

/* Before the interpreter ends.  Proxies of others' objects are to be let go of before. */
void pkg_own_end(void);
/* In a child, where no other interpreter is any more. */
void pkg_own_forked(void);

#endif
