/* Arrays of numpy whose items a buffer describes in full. */
#ifndef BINDINGS_PYTHON_EXT_ARRAYS_H
#define BINDINGS_PYTHON_EXT_ARRAYS_H

#include "bindings/python/ext/python.h"

/* Whether the object is such an array: of exactly numpy's class, and of numbers or truth values in
 * the machine's own order.  Raises nothing. */
int pkg_array_is(PyObject *object);

/* Makes an array of an object with the buffer protocol; NULL: with an exception. */
PyObject *pkg_array_new(PyObject *memory);

#endif
