/* Python's API, as far as this module uses it: the stable one where that suffices. */
#ifndef BINDINGS_PYTHON_EXT_PYTHON_H
#define BINDINGS_PYTHON_EXT_PYTHON_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#endif
