/* The part of the Python C API that the runtime calls, looked up in one context's libpython.  All
 * of it is in every supported version.  Objects are opaque here, so reference counts go through
 * functions and constants are symbols. */
#ifndef RUNTIME_PYAPI_H
#define RUNTIME_PYAPI_H

#include <stddef.h>
#include <stdio.h>
#include <wchar.h>

#include "loader/extisolate.h"
#include "runtime/pyconfig.h"

struct pyrt_object; /* PyObject */

/* PyCompilerFlags */
struct pyrt_compiler_flags {
    int flags, feature_version;
};

#define PYRT_FILE_INPUT 257           /* Py_file_input */
#define PYRT_IGNORE_COOKIE 0x0800     /* PyCF_IGNORE_COOKIE */
#define PYRT_PRINT_RAW 1              /* Py_PRINT_RAW */

typedef struct pyrt_object *pyrt_ref;

#define PYRT_FUNCTIONS(X)                                                                          \
    X(void, PyPreConfig_InitPythonConfig, (void *))                                                \
    X(struct pyrt_status, Py_PreInitialize, (const void *))                                        \
    X(void, PyConfig_InitPythonConfig, (void *))                                                   \
    X(struct pyrt_status, PyConfig_SetBytesString, (void *, wchar_t **, const char *))             \
    X(struct pyrt_status, PyConfig_SetBytesArgv, (void *, ptrdiff_t, char *const *))               \
    X(struct pyrt_status, PyConfig_Read, (void *))                                                 \
    X(void, PyConfig_Clear, (void *))                                                              \
    X(struct pyrt_status, Py_InitializeFromConfig, (const void *))                                 \
    X(int, Py_FinalizeEx, (void))                                                                  \
    X(void *, PyEval_SaveThread, (void))                                                           \
    X(void, PyEval_RestoreThread, (void *))                                                        \
    X(void, Py_IncRef, (pyrt_ref))                                                                 \
    X(void, Py_DecRef, (pyrt_ref))                                                                 \
    X(pyrt_ref, PyImport_AddModule, (const char *))                                                \
    X(pyrt_ref, PyImport_ImportModule, (const char *))                                             \
    X(pyrt_ref, PyImport_GetImporter, (pyrt_ref))                                                  \
    X(long, PyImport_GetMagicNumber, (void))                                                       \
    X(int, PyModule_AddIntConstant, (pyrt_ref, const char *, long))                                \
    X(int, PyModule_AddStringConstant, (pyrt_ref, const char *, const char *))                     \
    X(pyrt_ref, PyModule_GetDict, (pyrt_ref))                                                      \
    X(pyrt_ref, PyDict_GetItemString, (pyrt_ref, const char *))                                    \
    X(int, PyDict_SetItemString, (pyrt_ref, const char *, pyrt_ref))                               \
    X(int, PyDict_DelItemString, (pyrt_ref, const char *))                                         \
    X(int, PyList_Insert, (pyrt_ref, ptrdiff_t, pyrt_ref))                                         \
    X(pyrt_ref, PyObject_GetAttrString, (pyrt_ref, const char *))                                  \
    X(pyrt_ref, PyObject_CallFunction, (pyrt_ref, const char *, ...))                              \
    X(pyrt_ref, PyObject_CallMethod, (pyrt_ref, const char *, const char *, ...))                  \
    X(int, PyObject_IsInstance, (pyrt_ref, pyrt_ref))                                              \
    X(int, PyObject_IsTrue, (pyrt_ref))                                                            \
    X(pyrt_ref, PyUnicode_FromString, (const char *))                                              \
    X(pyrt_ref, PyUnicode_FromWideChar, (const wchar_t *, ptrdiff_t))                              \
    X(const char *, PyUnicode_AsUTF8AndSize, (pyrt_ref, ptrdiff_t *))                              \
    X(long, PyLong_AsLong, (pyrt_ref))                                                             \
    X(char *, Py_EncodeLocale, (const wchar_t *, size_t *))                                        \
    X(void, PyMem_Free, (void *))                                                                  \
    X(pyrt_ref, PySys_GetObject, (const char *))                                                   \
    X(int, PySys_SetObject, (const char *, pyrt_ref))                                              \
    X(void, PySys_SetArgvEx, (int, wchar_t **, int))                                               \
    X(void, PySys_WriteStderr, (const char *, ...))                                                \
    X(int, PySys_Audit, (const char *, const char *, ...))                                         \
    X(int, PyFile_WriteObject, (pyrt_ref, pyrt_ref, int))                                          \
    X(pyrt_ref, PyErr_Occurred, (void))                                                            \
    X(int, PyErr_ExceptionMatches, (pyrt_ref))                                                     \
    X(void, PyErr_Fetch, (pyrt_ref *, pyrt_ref *, pyrt_ref *))                                     \
    X(void, PyErr_NormalizeException, (pyrt_ref *, pyrt_ref *, pyrt_ref *))                        \
    X(void, PyErr_Clear, (void))                                                                   \
    X(void, PyErr_Display, (pyrt_ref, pyrt_ref, pyrt_ref))                                         \
    X(int, PyException_SetTraceback, (pyrt_ref, pyrt_ref))                                         \
    X(pyrt_ref, Py_CompileStringExFlags,                                                           \
      (const char *, const char *, int, struct pyrt_compiler_flags *, int))                        \
    X(pyrt_ref, PyEval_EvalCode, (pyrt_ref, pyrt_ref, pyrt_ref))                                   \
    X(pyrt_ref, PyRun_FileExFlags,                                                                 \
      (FILE *, const char *, int, pyrt_ref, pyrt_ref, int, struct pyrt_compiler_flags *))

struct pyrt_api {
    struct pyrt_build build;
#define MEMBER(type, name, args) type(*name) args;
    PYRT_FUNCTIONS(MEMBER)
#undef MEMBER
    pyrt_ref none, long_type;                    /* Py_None, &PyLong_Type */
    pyrt_ref *system_exit, *keyboard_interrupt;  /* &PyExc_... : set by initialisation */
};

int pyrt_api_find(struct pyrt_api *out, struct exti_module *libpython, struct pyrt_build build,
                  struct exti_error *err);

#endif
