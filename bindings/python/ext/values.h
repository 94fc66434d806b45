/* Objects of this interpreter as values for another one, and back. */
#ifndef BINDINGS_PYTHON_EXT_VALUES_H
#define BINDINGS_PYTHON_EXT_VALUES_H

#include "bindings/python/ext/state.h"

/* Whether the object and all in it is of exactly None, bool, int, float, str, bytes or tuple. */
int pkg_values_plain(PyObject *object);

/* Makes a set of the tuple, in which memoryviews may be, too.  NULL: with an exception. */
struct extipy_values *pkg_values_make(PyObject *tuple, size_t *number);

/* Returns the object, with memory as memoryviews; NULL: with an exception. */
PyObject *pkg_values_read(const struct extipy_values *values, size_t number);

#endif
