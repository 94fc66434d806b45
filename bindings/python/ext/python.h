/* Python's API, as far as this module uses it: the stable one where that suffices.  To be included
 * before any header of the system's, some of which its settings change (Python/C API, "Include
 * Files"). */
#ifndef BINDINGS_PYTHON_EXT_PYTHON_H
#define BINDINGS_PYTHON_EXT_PYTHON_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#endif
