/* What one copy of the module knows of itself. */
#ifndef BINDINGS_PYTHON_EXT_STATE_H
#define BINDINGS_PYTHON_EXT_STATE_H

#include "bindings/python/ext/python.h"

#include "bindings/python/ext/core.h"

struct pkg_state {
    const struct pkg_core *core;
    uint64_t id;            /* of the interpreter that it is in */
    struct extipy_ctx *ctx; /* that interpreter's; NULL: the main one */
    /* The package's functions of these names (_dispatch.py). */
    PyObject *dispatch, *answered, *failed, *adopt_thread, *in_main;
    /* And those that _proxies.py names. */
    PyObject *class_for, *special, *failed_linked, *raised, *collect, *data_kind, *packed,
        *unpacked;
    PyObject *gone;        /* the class of proxies of what was gone before its type was known */
    PyObject *data_types;  /* what `data_kind` gave (types.h) */
    struct pkg_heap *heap; /* its objects that others have; NULL: none so far, or any more */
    PyObject *targets;     /* of functions that imports find: "module:qualname" as bytes */
    PyObject *kept;        /* what others keep for this interpreter (_kept.py) */
    PyObject *wanted;      /* asked whether SIGINT is to interrupt; only in the main one */
    PyObject *error, *not_found, *exited;
};

extern struct pkg_state pkg_state;

/* Raises the Python exception for `code`; returns NULL. */
PyObject *pkg_state_raise(int code, const char *message);
/* The interpreter whose number is the one argument, for core->release; NULL with an exception. */
struct pkg_entry *pkg_state_acquire(PyObject *args);
/* Raises InterpreterExitedError with the status. */
void pkg_state_raise_exited(int status, const char *message);

#endif
