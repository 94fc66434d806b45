/* The functions of the Python C API that the runtime calls, looked up in one context's libpython.
 * Every supported version has all of them but those that configure it.  Objects are opaque:
 * reference counts change through functions, and constants are symbols. */
#ifndef RUNTIME_PYAPI_H
#define RUNTIME_PYAPI_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <wchar.h>

#include "runtime/pyconfig.h"
#include <extisolate.h>

struct pyobj; /* PyObject */

/* PyCompilerFlags */
struct pyrt_compiler_flags {
    int flags, feature_version;
};

/* PyMemAllocatorEx and PyObjectArenaAllocator */
struct pyrt_allocator {
    void *ctx;
    void *(*malloc)(void *ctx, size_t size);
    void *(*calloc)(void *ctx, size_t count, size_t size);
    void *(*realloc)(void *ctx, void *at, size_t size);
    void (*free)(void *ctx, void *at);
};
struct pyrt_arenas {
    void *ctx;
    void *(*alloc)(void *ctx, size_t size);
    void (*free)(void *ctx, void *at, size_t size);
};

/* PyMemAllocatorDomain */
enum pyrt_domain { PYRT_DOMAIN_RAW, PYRT_DOMAIN_MEM, PYRT_DOMAIN_OBJ };

/* PyMethodDef, and a flag of it. */
struct pyrt_method {
    const char *name;
    struct pyobj *(*function)(struct pyobj *self, struct pyobj *args);
    int flags;
    const char *doc;
};
#define PYRT_METHOD_ARGS 0x0001 /* METH_VARARGS */

#define PYRT_FILE_INPUT 257       /* Py_file_input */
#define PYRT_IGNORE_COOKIE 0x0800 /* PyCF_IGNORE_COOKIE */
#define PYRT_PRINT_RAW 1          /* Py_PRINT_RAW */

#define PYRT_FUNCTIONS(X)                                                                          \
    X(void, PyPreConfig_InitPythonConfig, (void *))                                                \
    X(struct pyrt_status, Py_PreInitialize, (const void *))                                        \
    X(void, PyMem_GetAllocator, (int, struct pyrt_allocator *))                                    \
    X(void, PyMem_SetAllocator, (int, const struct pyrt_allocator *))                              \
    X(void, PyMem_SetupDebugHooks, (void))                                                         \
    X(void, PyObject_SetArenaAllocator, (const struct pyrt_arenas *))                              \
    X(int, Py_FinalizeEx, (void))                                                                  \
    X(int, Py_IsInitialized, (void))                                                               \
    X(int, PyGILState_Ensure, (void))                                                              \
    X(void *, PyEval_SaveThread, (void))                                                           \
    X(void, PyEval_RestoreThread, (void *))                                                        \
    X(void, Py_IncRef, (struct pyobj *))                                                           \
    X(void, Py_DecRef, (struct pyobj *))                                                           \
    X(int, PyImport_AppendInittab, (const char *, struct pyobj *(*)(void)))                        \
    X(struct pyobj *, PyImport_AddModule, (const char *))                                          \
    X(struct pyobj *, PyImport_ImportModule, (const char *))                                       \
    X(struct pyobj *, PyImport_GetImporter, (struct pyobj *))                                      \
    X(long, PyImport_GetMagicNumber, (void))                                                       \
    X(struct pyobj *, PyModuleDef_Init, (void *))                                                  \
    X(int, PyModule_AddIntConstant, (struct pyobj *, const char *, long))                          \
    X(int, PyModule_AddStringConstant, (struct pyobj *, const char *, const char *))               \
    X(struct pyobj *, PyModule_GetDict, (struct pyobj *))                                          \
    X(struct pyobj *, PyDict_GetItemString, (struct pyobj *, const char *))                        \
    X(int, PyDict_SetItemString, (struct pyobj *, const char *, struct pyobj *))                   \
    X(int, PyDict_DelItemString, (struct pyobj *, const char *))                                   \
    X(struct pyobj *, PyList_New, (ptrdiff_t))                                                     \
    X(int, PyList_Append, (struct pyobj *, struct pyobj *))                                        \
    X(int, PyList_Insert, (struct pyobj *, ptrdiff_t, struct pyobj *))                             \
    X(struct pyobj *, PyObject_GetAttrString, (struct pyobj *, const char *))                      \
    X(struct pyobj *, PyObject_CallFunction, (struct pyobj *, const char *, ...))                  \
    X(struct pyobj *, PyObject_CallMethod, (struct pyobj *, const char *, const char *, ...))      \
    X(int, PyObject_IsInstance, (struct pyobj *, struct pyobj *))                                  \
    X(struct pyobj *, PyUnicode_DecodeFSDefault, (const char *))                                   \
    X(const char *, PyUnicode_AsUTF8AndSize, (struct pyobj *, ptrdiff_t *))                        \
    X(long, PyLong_AsLong, (struct pyobj *))                                                       \
    X(struct pyobj *, PyLong_FromLong, (long))                                                     \
    X(struct pyobj *, PyCFunction_NewEx,                                                           \
      (const struct pyrt_method *, struct pyobj *, struct pyobj *))                                \
    X(void, PyErr_SetObject, (struct pyobj *, struct pyobj *))                                     \
    X(wchar_t *, Py_DecodeLocale, (const char *, size_t *))                                        \
    X(void, PyMem_RawFree, (void *))                                                               \
    X(struct pyobj *, PySys_GetObject, (const char *))                                             \
    X(int, PySys_SetObject, (const char *, struct pyobj *))                                        \
    X(void, PySys_SetArgvEx, (int, wchar_t **, int))                                               \
    X(void, PySys_WriteStderr, (const char *, ...))                                                \
    X(int, PySys_Audit, (const char *, const char *, ...))                                         \
    X(int, PyFile_WriteObject, (struct pyobj *, struct pyobj *, int))                              \
    X(int, PyObject_Print, (struct pyobj *, FILE *, int))                                          \
    X(int, PyErr_ExceptionMatches, (struct pyobj *))                                               \
    X(void, PyErr_Fetch, (struct pyobj **, struct pyobj **, struct pyobj **))                      \
    X(void, PyErr_NormalizeException, (struct pyobj **, struct pyobj **, struct pyobj **))         \
    X(struct pyobj *, PyErr_NoMemory, (void))                                                      \
    X(void, PyErr_Clear, (void))                                                                   \
    X(void, PyErr_Display, (struct pyobj *, struct pyobj *, struct pyobj *))                       \
    X(int, PyException_SetTraceback, (struct pyobj *, struct pyobj *))                             \
    X(struct pyobj *, Py_CompileStringExFlags,                                                     \
      (const char *, const char *, int, struct pyrt_compiler_flags *, int))                        \
    X(struct pyobj *, PyEval_EvalCode, (struct pyobj *, struct pyobj *, struct pyobj *))           \
    X(struct pyobj *, PyRun_FileExFlags,                                                           \
      (FILE *, const char *, int, struct pyobj *, struct pyobj *, int,                             \
       struct pyrt_compiler_flags *))

/* PEP 587; called before 3.14 only. */
#define PYRT_CONFIG_FUNCTIONS(X)                                                                   \
    X(void, PyConfig_InitPythonConfig, (void *))                                                   \
    X(struct pyrt_status, PyConfig_SetBytesString, (void *, wchar_t **, const char *))             \
    X(struct pyrt_status, PyConfig_SetWideStringList,                                              \
      (void *, struct pyrt_wlist *, ptrdiff_t, wchar_t **))                                        \
    X(void, PyConfig_Clear, (void *))                                                              \
    X(struct pyrt_status, Py_InitializeFromConfig, (const void *))

/* PEP 741, from 3.14 on. */
#define PYRT_INITCONFIG_FUNCTIONS(X)                                                               \
    X(void *, PyInitConfig_Create, (void))                                                         \
    X(void, PyInitConfig_Free, (void *))                                                           \
    X(int, PyInitConfig_GetError, (void *, const char **))                                         \
    X(int, PyInitConfig_HasOption, (void *, const char *))                                         \
    X(int, PyInitConfig_GetInt, (void *, const char *, int64_t *))                                 \
    X(int, PyInitConfig_SetInt, (void *, const char *, int64_t))                                   \
    X(int, PyInitConfig_SetStr, (void *, const char *, const char *))                              \
    X(int, PyInitConfig_SetStrList, (void *, const char *, size_t, char *const *))                 \
    X(int, Py_InitializeFromInitConfig, (void *))

struct pyrt_api {
    struct pyrt_build build;
#define MEMBER(type, name, args) type(*name) args;
    PYRT_FUNCTIONS(MEMBER)
    PYRT_CONFIG_FUNCTIONS(MEMBER)
    PYRT_INITCONFIG_FUNCTIONS(MEMBER)
#undef MEMBER
    struct pyobj *none, *long_type; /* Py_None, &PyLong_Type */
    /* &PyExc_...; valid after initialisation */
    struct pyobj **system_exit, **keyboard_interrupt, **runtime_error;
};

/* Looks `name` up, and stores its address in `slot`, a pointer to a function or to an object. */
int pyrt_symbol_find(struct exti_module *m, const char *name, void *slot, struct exti_error *err);

struct pyrt_symbol {
    const char *name;
    void *slot;
};
int pyrt_symbols_find(struct exti_module *m, const struct pyrt_symbol *table, size_t count,
                      struct exti_error *err);

int pyrt_api_find(struct pyrt_api *out, struct exti_module *libpython, struct pyrt_build build,
                  struct exti_error *err);

#endif
