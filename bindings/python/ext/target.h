/* Functions by a name: that which an import finds, or that which another interpreter keeps. */
#ifndef BINDINGS_PYTHON_EXT_TARGET_H
#define BINDINGS_PYTHON_EXT_TARGET_H

#include "bindings/python/ext/python.h"

/* Returns a new reference to the name, as bytes, by which the interpreter `id` finds the function;
 * NULL, and no exception: none is known. */
PyObject *pkg_target_of(PyObject *function, unsigned long long id);

/* Whether what is known of a function that others keep (_kept.py, Entry) is still so. */
int pkg_target_unchanged(PyObject *entry);

/* Gives the function of that name as it is now; NULL: with an exception. */
PyObject *pkg_target_find(const char *name, size_t hash);

#endif
