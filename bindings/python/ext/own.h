/* The heap of the interpreter that this copy of the module is in. */
#ifndef BINDINGS_PYTHON_EXT_OWN_H
#define BINDINGS_PYTHON_EXT_OWN_H

#include "bindings/python/ext/python.h"

#include "bindings/python/ext/object.h"

/* Made when it is first asked for.  NULL: with an exception. */
struct pkg_heap *pkg_own_heap(void);

/* The handle of an object, with a reference; NULL: with an exception. */
struct pkg_object *pkg_own_handle(PyObject *object);
/* The object of a handle of this heap; NULL: with an exception, if it has ended. */
PyObject *pkg_own_object(const struct pkg_object *handle);

/* Lets go of objects whose handles were released; leaves the exception that is set. */
void pkg_own_settle(void);
/* The same if there are any, which costs nothing otherwise. */
void pkg_own_settle_rung(void);
/* The same for who was rung (pkg_heap.ring). */
void pkg_own_settle_asked(void);

/* Before the interpreter ends.  Proxies of others' objects are to be let go of before. */
void pkg_own_end(void);
/* In a child, where no other interpreter is any more. */
void pkg_own_forked(void);

#endif
