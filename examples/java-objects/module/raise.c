/* Exceptions: each side's are wrapped for the other one, and come home as themselves. */
#include "module.h"

#include <string.h>

PyObject *java_error;

/* ---- of Java in Python ----------------------------------------------------------------------- */

/* javaobjects.Error(message), whose attribute `java` is the Throwable. */
static void raise_java(const struct outcome *o)
{
    PyObject *throwable = convert_to_python(&o->value);
    PyObject *message = throwable ? convert_to_python(&o->message) : NULL;
    PyObject *error = message ? PyObject_CallOneArg(java_error, message) : NULL;

    if (error && PyObject_SetAttrString(error, "java", throwable) == 0)
        PyErr_SetObject(java_error, error);
    Py_XDECREF(error);
    Py_XDECREF(message);
    Py_XDECREF(throwable);
}

static void raise_python(const struct outcome *o)
{
    PyObject *error = convert_to_python(&o->value);

    if (error && PyExceptionInstance_Check(error))
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    else if (error)
        PyErr_SetString(PyExc_SystemError, "the value of a PyException is no exception");
    Py_XDECREF(error);
}

PyObject *raise_outcome(const struct outcome *o)
{
    if (o->value.kind == KIND_NONE)
        PyErr_SetString(PyExc_SystemError, "a Java exception that cannot be given to Python");
    else if (o->raised == RAISED_JAVA)
        raise_java(o);
    else
        raise_python(o);
    return NULL;
}

/* ---- of Python in Java ----------------------------------------------------------------------- */

/* The Throwable behind a javaobjects.Error, in which Python code may have put anything. */
static int fetch_java(PyObject *error, struct outcome *o)
{
    PyObject *throwable =
        PyObject_IsInstance(error, java_error) == 1 ? PyObject_GetAttrString(error, "java") : NULL;
    const int found = throwable && shell_is(throwable) && ((struct shell *)throwable)->entry &&
                      convert_to_java(throwable, &o->value) == 0 &&
                      java->is_throwable(o->value.object);

    PyErr_Clear();
    Py_XDECREF(throwable);
    if (found)
        o->raised = RAISED_JAVA;
    return found;
}

/* Consumes the reference; what cannot be made is empty. */
static void describe(PyObject *text, struct value *out)
{
    if (!text || !PyUnicode_Check(text) || convert_to_java(text, out) < 0)
        *out = (struct value){.kind = KIND_STR};
    PyErr_Clear();
    Py_XDECREF(text);
}

static PyObject *type_name(PyObject *error)
{
    PyObject *type = (PyObject *)Py_TYPE(error),
             *name = PyObject_GetAttrString(type, "__qualname__");
    PyObject *module = name ? PyObject_GetAttrString(type, "__module__") : NULL, *full = NULL;

    if (module && PyUnicode_Check(module) && PyUnicode_CompareWithASCIIString(module, "builtins"))
        full = PyUnicode_FromFormat("%U.%U", module, name);
    Py_XDECREF(module);
    if (!full)
        return name;
    Py_DECREF(name);
    return full;
}

static PyObject *format_traceback(PyObject *error)
{
    PyObject *traceback = PyImport_ImportModule("traceback");
    PyObject *where = PyException_GetTraceback(error), *lines = NULL, *text = NULL, *empty = NULL;

    if (traceback)
        lines = PyObject_CallMethod(traceback, "format_exception", "OOO", Py_TYPE(error), error,
                                    where ? where : Py_None);
    if (lines && (empty = PyUnicode_FromString("")))
        text = PyUnicode_Join(empty, lines);
    Py_XDECREF(empty);
    Py_XDECREF(lines);
    Py_XDECREF(where);
    Py_XDECREF(traceback);
    return text;
}

static PyObject *take_error(void)
{
    PyObject *type, *value, *trace;

    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (value && trace)
        PyException_SetTraceback(value, trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    return value;
}

void raise_fetch(struct outcome *o)
{
    PyObject *error = take_error();

    memset(o, 0, sizeof *o);
    o->raised = RAISED_PYTHON;
    if (!fetch_java(error, o)) {
        describe(type_name(error), &o->type);
        describe(PyObject_Str(error), &o->message);
        describe(format_traceback(error), &o->traceback);
        if (convert_to_java(error, &o->value) < 0)
            o->value = (struct value){.kind = KIND_NONE};
    }
    PyErr_Clear();
    Py_XDECREF(error);
}
