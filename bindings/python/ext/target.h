/* Functions by the name that an import finds them by. */
#ifndef BINDINGS_PYTHON_EXT_TARGET_H
#define BINDINGS_PYTHON_EXT_TARGET_H

#include "bindings/python/ext/python.h"

/* Returns a new reference to the name, as bytes, of a function that is known to have one; NULL, and
 * no exception: none is known. */
PyObject *pkg_target_of(PyObject *function);

/* Gives the function of that name as it is now; NULL: with an exception. */
PyObject *pkg_target_find(const char *name, size_t hash);

#endif
