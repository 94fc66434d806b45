/* Values of exactly the types that both languages have are copied; of others there are links. */
#include "module.h"

#include <stdlib.h>
#include <string.h>

const struct java_half *java;

#define BYTE_ORDER_NATIVE (PY_BIG_ENDIAN ? "utf-16-be" : "utf-16-le")

int convert_reason(int reason)
{
    if (PyErr_Occurred())
        return -1;
    if (reason == REASON_CLOSED)
        PyErr_SetString(PyExc_ReferenceError, "the context's links to Java have ended");
    else if (reason == REASON_DEAD)
        PyErr_SetString(PyExc_ReferenceError,
                        "the Java object has died, as nothing but a circle through both heaps, in "
                        "which it was, referred to it, or the context's links to Java have ended");
    else if (reason == REASON_STACK)
        PyErr_SetString(PyExc_RecursionError, "too little stack is left for a call of Java");
    else if (reason == REASON_THREAD)
        PyErr_SetString(PyExc_RuntimeError, "Java does not take this thread");
    else
        PyErr_NoMemory();
    return -1;
}

int convert_text_to_java(PyObject *o, struct value *out)
{
    PyObject *bytes = PyUnicode_AsEncodedString(o, BYTE_ORDER_NATIVE, "surrogatepass");

    if (!bytes)
        return -1;
    out->kind = KIND_STR;
    out->length = (size_t)PyBytes_GET_SIZE(bytes) / 2;
    out->text = malloc((out->length + 1) * 2);
    if (out->text)
        memcpy(out->text, PyBytes_AS_STRING(bytes), out->length * 2);
    Py_DECREF(bytes);
    return out->text ? 0 : convert_reason(REASON_NOMEM);
}

static int object_to_java(PyObject *o, struct value *out)
{
    const int rc = java->to_java(java->host, o, &out->object);

    out->kind = KIND_OBJECT;
    return rc < 0 ? convert_reason(rc) : 0;
}

static int shell_to_java(PyObject *o, struct value *out)
{
    struct entry *entry = ((struct shell *)o)->entry;

    out->kind = KIND_OBJECT;
    out->object = entry ? java->object_of(java->host, entry) : NULL;
    return out->object ? 0 : convert_reason(REASON_DEAD);
}

int convert_to_java(PyObject *o, struct value *out)
{
    int overflow = 0;

    memset(out, 0, sizeof *out);
    out->kind = KIND_NONE;
    if (o == Py_None)
        return 0;
    if (shell_is(o))
        return shell_to_java(o, out);
    if (PyBool_Check(o)) {
        out->kind = KIND_BOOL;
        out->integer = o == Py_True;
    } else if (PyFloat_CheckExact(o)) {
        out->kind = KIND_FLOAT;
        out->real = PyFloat_AS_DOUBLE(o);
    } else if (PyUnicode_CheckExact(o)) {
        return convert_text_to_java(o, out);
    } else if (PyLong_CheckExact(o)) {
        out->kind = KIND_INT;
        out->integer = PyLong_AsLongLongAndOverflow(o, &overflow);
        return overflow ? object_to_java(o, out) : 0; /* longer than a long: it stays here */
    } else {
        return object_to_java(o, out);
    }
    return 0;
}

/* A native comes home, a Java object as its shell; both are native code's from now on. */
static PyObject *object_to_python(const struct value *value)
{
    void *shell = value->native;
    int rc;

    if (value->kind == KIND_OBJECT)
        rc = java->shell_of(java->host, value->entry, &shell);
    else
        rc = java->hand_out(java->host, shell);
    if (rc < 0) {
        convert_reason(rc);
        return NULL;
    }
    if (value->kind == KIND_NATIVE)
        Py_INCREF((PyObject *)shell);
    return shell;
}

PyObject *convert_to_python(const struct value *value)
{
    int order = PY_BIG_ENDIAN ? 1 : -1;

    switch (value->kind) {
    case KIND_BOOL:
        return PyBool_FromLong(value->integer != 0);
    case KIND_INT:
        return PyLong_FromLongLong(value->integer);
    case KIND_FLOAT:
        return PyFloat_FromDouble(value->real);
    case KIND_STR:
        return PyUnicode_DecodeUTF16((const char *)value->text, (Py_ssize_t)value->length * 2,
                                     "surrogatepass", &order);
    case KIND_OBJECT:
    case KIND_NATIVE:
        return object_to_python(value);
    default:
        Py_RETURN_NONE;
    }
}

void convert_free(struct value *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(values[i].text);
}
