/* The functions of the Python C API that only the library of contexts calls, as in
 * runtime/pyapi.h. */
#ifndef RUNTIME_EMBED_CALLS_H
#define RUNTIME_EMBED_CALLS_H

#include "runtime/pyapi.h"

#define EXTIPY_FUNCTIONS(X)                                                                        \
    X(void *, PyInterpreterState_Main, (void))                                                     \
    X(void *, PyThreadState_New, (void *))                                                         \
    X(void, PyThreadState_Clear, (void *))                                                         \
    X(void, PyThreadState_DeleteCurrent, (void))                                                   \
    X(void *, PyGILState_GetThisThreadState, (void))                                               \
    X(struct pyobj *, PyObject_Type, (struct pyobj *))                                             \
    X(struct pyobj *, PyObject_Str, (struct pyobj *))                                              \
    X(struct pyobj *, PyObject_Call, (struct pyobj *, struct pyobj *, struct pyobj *))             \
    X(struct pyobj *, PyBool_FromLong, (long))                                                     \
    X(struct pyobj *, PyLong_FromLongLong, (long long))                                            \
    X(long long, PyLong_AsLongLongAndOverflow, (struct pyobj *, int *))                            \
    X(struct pyobj *, PyFloat_FromDouble, (double))                                                \
    X(double, PyFloat_AsDouble, (struct pyobj *))                                                  \
    X(struct pyobj *, PyUnicode_Decode, (const char *, ptrdiff_t, const char *, const char *))     \
    X(struct pyobj *, PyUnicode_AsEncodedString, (struct pyobj *, const char *, const char *))     \
    X(struct pyobj *, PyBytes_FromStringAndSize, (const char *, ptrdiff_t))                        \
    X(int, PyBytes_AsStringAndSize, (struct pyobj *, char **, ptrdiff_t *))                        \
    X(struct pyobj *, PyTuple_New, (ptrdiff_t))                                                    \
    X(int, PyTuple_SetItem, (struct pyobj *, ptrdiff_t, struct pyobj *))                           \
    X(struct pyobj *, PyTuple_GetItem, (struct pyobj *, ptrdiff_t))                                \
    X(ptrdiff_t, PyTuple_Size, (struct pyobj *))                                                   \
    X(struct pyobj *, PySequence_Tuple, (struct pyobj *))                                          \
    X(struct pyobj *, PyList_New, (ptrdiff_t))                                                     \
    X(int, PyList_Append, (struct pyobj *, struct pyobj *))                                        \
    X(struct pyobj *, PySet_New, (struct pyobj *))                                                 \
    X(int, PySet_Add, (struct pyobj *, struct pyobj *))                                            \
    X(struct pyobj *, PyDict_New, (void))                                                          \
    X(struct pyobj *, PyDict_Copy, (struct pyobj *))                                               \
    X(int, PyDict_SetItem, (struct pyobj *, struct pyobj *, struct pyobj *))                       \
    X(int, PyDict_Next, (struct pyobj *, ptrdiff_t *, struct pyobj **, struct pyobj **))           \
    X(void, PyErr_SetString, (struct pyobj *, const char *))                                       \
    X(struct pyobj *, PyErr_NoMemory, (void))                                                      \
    X(struct pyobj *, PyException_GetCause, (struct pyobj *))                                      \
    X(struct pyobj *, PyException_GetContext, (struct pyobj *))

#define EXTIPY_TYPES(X)                                                                            \
    X(PyBool_Type)                                                                                 \
    X(PyFloat_Type)                                                                                \
    X(PyUnicode_Type) X(PyBytes_Type) X(PyTuple_Type) X(PyList_Type) X(PySet_Type) X(PyDict_Type)

struct extipy_calls {
#define MEMBER(type, name, args) type(*name) args;
    EXTIPY_FUNCTIONS(MEMBER)
#undef MEMBER
#define MEMBER(name) struct pyobj *name;
    EXTIPY_TYPES(MEMBER)
#undef MEMBER
    struct pyobj **type_error; /* &PyExc_TypeError */
    /* PyThreadState_GetUnchecked, which before 3.13 had an underscore and another name: the state
     * that has the GIL, or NULL.  From 3.12 on only if that is one of this thread. */
    void *(*current_state)(void);
};

int extipy__calls_find(struct extipy_calls *out, struct exti_module *libpython,
                       struct exti_error *err);

#endif
