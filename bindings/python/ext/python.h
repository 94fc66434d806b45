/* Python's API, as far as this module uses it: the stable one where that suffices.  To be included
 * before any header of the system's, some of which its settings change (Python/C API, "Include
 * Files"). */
#ifndef BINDINGS_PYTHON_EXT_PYTHON_H
#define BINDINGS_PYTHON_EXT_PYTHON_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#if defined(Py_LIMITED_API) && Py_LIMITED_API + 0 < 0x030C0000
/* PEP 590's, which the stable ABI has from 3.12 on.  3.11 exports the same. */
#define Py_TPFLAGS_HAVE_VECTORCALL (1UL << 11)
#define PY_VECTORCALL_ARGUMENTS_OFFSET ((size_t)1 << (8 * sizeof(size_t) - 1))
#define PyVectorcall_NARGS(n) ((Py_ssize_t)((n) & ~PY_VECTORCALL_ARGUMENTS_OFFSET))
typedef PyObject *(*vectorcallfunc)(PyObject *callable, PyObject *const *args, size_t n,
                                    PyObject *names);
PyAPI_FUNC(PyObject *)
    PyObject_Vectorcall(PyObject *callable, PyObject *const *args, size_t n, PyObject *names);
PyAPI_FUNC(PyObject *) PyVectorcall_Call(PyObject *callable, PyObject *args, PyObject *named);
#endif

#endif
