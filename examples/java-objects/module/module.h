/* module.h - the Python half: the extension module javaobjects, of which each context has a copy. */
#ifndef MODULE_H
#define MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "bridge.h"

/* A Java object in Python. */
struct shell {
    PyObject base;
    struct entry *entry; /* NULL: it has ended */
};

extern const struct java_half *java; /* convert.c */
extern PyObject *java_error;         /* raise.c: the type javaobjects.Error */

/* natives.c */
extern const struct exti_natives natives;
void natives_count_weak(int on);

/* shell.c */
extern PyTypeObject *shell_type;
int shell_is(PyObject *o);
void *shell_new(struct entry *entry);
void shell_ended(void *shell);
void shell_dealloc(PyObject *o);
int shell_traverse(PyObject *o, visitproc visit, void *arg);

/* convert.c: 0, or -1 with a Python exception. */
int convert_to_java(PyObject *o, struct value *out);
int convert_text_to_java(PyObject *o, struct value *out); /* a str, also of a subclass */
PyObject *convert_to_python(const struct value *value);   /* a new reference */
int convert_reason(int reason);                           /* sets the exception; -1 */
void convert_free(struct value *values, size_t count);

/* raise.c: exceptions in both directions. */
PyObject *raise_outcome(const struct outcome *outcome); /* NULL */
void raise_fetch(struct outcome *outcome);              /* takes the pending one */

/* types.c */
int types_begin(PyObject *module);

/* perform.c */
void perform(enum operation op, const struct value *args, size_t count, struct outcome *outcome);

#endif
