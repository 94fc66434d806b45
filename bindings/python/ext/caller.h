/* The class of what stands for another interpreter, and calls it; and that of what calls the one
 * which the thread keeps. */
#ifndef BINDINGS_PYTHON_EXT_CALLER_H
#define BINDINGS_PYTHON_EXT_CALLER_H

#include "bindings/python/ext/python.h"

/* Adds them to the module; -1: with an exception. */
int pkg_caller_add(PyObject *module);

#endif
