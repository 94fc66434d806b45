/* What is known of types, as long as they live.  Told apart by what they are: their metaclasses may
 * compare them in other ways. */
#ifndef BINDINGS_PYTHON_EXT_TYPES_H
#define BINDINGS_PYTHON_EXT_TYPES_H

#include "bindings/python/ext/python.h"

/* Of a dict that is these functions' own.  Borrowed; NULL: nothing is known, or with an
 * exception. */
PyObject *pkg_types_get(PyObject *known, PyObject *type);
/* Returns -1 with an exception. */
int pkg_types_set(PyObject *known, PyObject *type, PyObject *value);

#endif
