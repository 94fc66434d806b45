/* The functions of the Python C API that only the library of contexts calls, as in
 * runtime/pyapi.h. */
#ifndef RUNTIME_EMBED_CALLS_H
#define RUNTIME_EMBED_CALLS_H

#include "runtime/pyapi.h"

/* Py_buffer, and flags that ask for it. */
struct extipy_view {
    void *buf;
    struct pyobj *obj;
    ptrdiff_t len, itemsize;
    int readonly, ndim;
    char *format;
    ptrdiff_t *shape, *strides, *suboffsets;
    void *internal;
};
#define EXTIPY_VIEW_WRITABLE 0x0001 /* PyBUF_WRITABLE */
#define EXTIPY_VIEW_FORMAT 0x0004   /* PyBUF_FORMAT */
#define EXTIPY_VIEW_ND 0x0008       /* PyBUF_ND */
#define EXTIPY_VIEW_STRIDES 0x0018  /* PyBUF_STRIDES */
#define EXTIPY_VIEW_C 0x0020        /* PyBUF_C_CONTIGUOUS, less PyBUF_STRIDES; so the next two */
#define EXTIPY_VIEW_F 0x0040
#define EXTIPY_VIEW_ANY 0x0080

/* PyType_Spec and PyType_Slot, and numbers of slots. */
struct extipy_type_slot {
    int slot;
    void *function;
};
struct extipy_type_spec {
    const char *name;
    int basicsize, itemsize;
    unsigned flags;
    struct extipy_type_slot *slots;
};
/* PyMethodDef, and flags of it. */
struct extipy_method {
    const char *name;
    struct pyobj *(*function)(struct pyobj *self, struct pyobj *argument);
    int flags;
    const char *doc;
};
#define EXTIPY_METHOD_NONE 0x0004     /* METH_NOARGS */
#define EXTIPY_METHOD_ONE 0x0008      /* METH_O */
#define EXTIPY_TYPE_NO_CALL (1u << 7) /* Py_TPFLAGS_DISALLOW_INSTANTIATION, from 3.10 on */
#define EXTIPY_SLOT_GETBUFFER 1       /* Py_bf_getbuffer */
#define EXTIPY_SLOT_DEALLOC 52        /* Py_tp_dealloc */
#define EXTIPY_SLOT_METHODS 64        /* Py_tp_methods */

#define EXTIPY_FUNCTIONS(X)                                                                        \
    X(void *, PyInterpreterState_Main, (void))                                                     \
    X(void *, PyInterpreterState_Head, (void))                                                     \
    X(void *, PyInterpreterState_Next, (void *))                                                   \
    X(void *, PyThreadState_New, (void *))                                                         \
    X(void, PyThreadState_Clear, (void *))                                                         \
    X(void, PyThreadState_DeleteCurrent, (void))                                                   \
    X(void *, PyGILState_GetThisThreadState, (void))                                               \
    X(unsigned long, PyThread_get_thread_ident, (void))                                            \
    X(int, PyThreadState_SetAsyncExc, (unsigned long, struct pyobj *))                             \
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
    X(struct pyobj *, PySet_New, (struct pyobj *))                                                 \
    X(int, PySet_Add, (struct pyobj *, struct pyobj *))                                            \
    X(struct pyobj *, PyDict_New, (void))                                                          \
    X(struct pyobj *, PyDict_Copy, (struct pyobj *))                                               \
    X(int, PyDict_SetItem, (struct pyobj *, struct pyobj *, struct pyobj *))                       \
    X(int, PyDict_Next, (struct pyobj *, ptrdiff_t *, struct pyobj **, struct pyobj **))           \
    X(void, PyErr_SetString, (struct pyobj *, const char *))                                       \
    X(struct pyobj *, PyErr_SetFromErrno, (struct pyobj *))                                        \
    X(struct pyobj *, PyException_GetCause, (struct pyobj *))                                      \
    X(struct pyobj *, PyException_GetContext, (struct pyobj *))                                    \
    X(struct pyobj *, PyMemoryView_FromObject, (struct pyobj *))                                   \
    X(int, PyObject_GetBuffer, (struct pyobj *, struct extipy_view *, int))                        \
    X(void, PyBuffer_Release, (struct extipy_view *))                                              \
    X(int, PyBuffer_IsContiguous, (const struct extipy_view *, char))                              \
    X(struct pyobj *, PyType_FromSpec, (struct extipy_type_spec *))                                \
    X(struct pyobj *, PyType_GenericAlloc, (struct pyobj *, ptrdiff_t))                            \
    X(void, PyObject_Free, (void *))                                                               \
    X(unsigned long, PyType_GetFlags, (struct pyobj *))                                            \
    X(void, PyObject_GC_Track, (void *))                                                           \
    X(void, PyObject_GC_UnTrack, (void *))

#define EXTIPY_TYPES(X)                                                                            \
    X(struct pyobj *, PyType_Type)                                                                 \
    X(struct pyobj *, PyBaseObject_Type)                                                           \
    X(struct pyobj *, PyBool_Type)                                                                 \
    X(struct pyobj *, PyFloat_Type)                                                                \
    X(struct pyobj *, PyUnicode_Type)                                                              \
    X(struct pyobj *, PyBytes_Type)                                                                \
    X(struct pyobj *, PyTuple_Type)                                                                \
    X(struct pyobj *, PyList_Type)                                                                 \
    X(struct pyobj *, PySet_Type)                                                                  \
    X(struct pyobj *, PyDict_Type)                                                                 \
    X(struct pyobj **, PyExc_TypeError)                                                            \
    X(struct pyobj **, PyExc_OSError)                                                              \
    X(struct pyobj **, PyExc_BufferError)                                                          \
    X(struct pyobj **, PyExc_TimeoutError)

struct extipy_calls {
#define MEMBER(type, name, args) type(*name) args;
    EXTIPY_FUNCTIONS(MEMBER)
#undef MEMBER
#define MEMBER(type, name) type name;
    EXTIPY_TYPES(MEMBER)
#undef MEMBER
    /* PyThreadState_GetUnchecked, which before 3.13 had an underscore and another name: the state
     * that has the GIL, or NULL.  From 3.12 on only if that is one of this thread. */
    void *(*current_state)(void);
};

int extipy__calls_find(struct extipy_calls *out, struct exti_module *libpython,
                       struct exti_error *err);

#endif
