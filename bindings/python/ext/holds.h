/* What is in tuples, lists and dicts. */
#ifndef BINDINGS_PYTHON_EXT_HOLDS_H
#define BINDINGS_PYTHON_EXT_HOLDS_H

#include "bindings/python/ext/python.h"

/* Method of the module, of an object and a tuple of types: whether the object is exactly of one of
 * the types, or has such an object in it.  Before each pickling, so it has to be quick. */
PyObject *pkg_holds(PyObject *module, PyObject *args);

#endif
