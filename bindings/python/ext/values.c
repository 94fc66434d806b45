#include "bindings/python/ext/values.h"

#include "bindings/python/ext/memory.h"

/* Deeper ones are left to pickle, which has its own limit. */
#define DEPTH_MAX 50

/* ---- out ---- */

static int plain_at(PyObject *o, int depth)
{
    if (o == Py_None || PyBool_Check(o) || PyLong_CheckExact(o) || PyFloat_CheckExact(o) ||
        PyUnicode_CheckExact(o) || PyBytes_CheckExact(o))
        return 1;
    if (!PyTuple_CheckExact(o) || depth == DEPTH_MAX)
        return 0;
    for (Py_ssize_t i = 0, n = PyTuple_Size(o); i < n; i++)
        if (!plain_at(PyTuple_GetItem(o, i), depth + 1))
            return 0;
    return 1;
}

int pkg_values_plain(PyObject *o)
{
    return plain_at(o, 0);
}

static size_t add_bytes(struct extipy_values *values, PyObject *bytes, enum extipy_kind kind)
{
    char *data;
    Py_ssize_t n;

    if (!bytes || PyBytes_AsStringAndSize(bytes, &data, &n) < 0)
        return 0;
    if (kind == EXTIPY_STR)
        return extipy_str(values, data, (size_t)n);
    if (kind == EXTIPY_INT)
        return extipy_big_int(values, data, (size_t)n);
    return extipy_bytes(values, data, (size_t)n);
}

/* Adds the bytes that a method of the object gives. */
static size_t add_encoded(struct extipy_values *values, PyObject *bytes, enum extipy_kind kind)
{
    size_t number = add_bytes(values, bytes, kind);

    Py_XDECREF(bytes);
    return number;
}

static PyObject *int_bytes(PyObject *o)
{
    PyObject *bits = PyObject_CallMethod(o, "bit_length", NULL), *method, *args, *named;
    PyObject *bytes = NULL;
    Py_ssize_t size = bits ? PyLong_AsSsize_t(bits) / 8 + 1 : 0;

    Py_XDECREF(bits);
    if (!size)
        return NULL;
    method = PyObject_GetAttrString(o, "to_bytes");
    args = Py_BuildValue("(ns)", size, "little");
    named = Py_BuildValue("{sO}", "signed", Py_True);
    if (method && args && named)
        bytes = PyObject_Call(method, args, named);
    Py_XDECREF(method);
    Py_XDECREF(args);
    Py_XDECREF(named);
    return bytes;
}

static size_t add_int(struct extipy_values *values, PyObject *o)
{
    int overflow;
    long long small = PyLong_AsLongLongAndOverflow(o, &overflow);

    return overflow ? add_encoded(values, int_bytes(o), EXTIPY_INT) : extipy_int(values, small);
}

static size_t add_memory(struct extipy_values *values, PyObject *o)
{
    struct extipy_buffer *buffer = pkg_memory_export(o);
    size_t number = buffer ? extipy_buffer(values, buffer) : 0;

    extipy_buffer_release(buffer);
    return number;
}

static size_t add_value(struct extipy_values *values, PyObject *o);

static size_t add_tuple(struct extipy_values *values, PyObject *o)
{
    size_t few[8], *items = few, number = 0, n = (size_t)PyTuple_Size(o), i;

    if (n > sizeof few / sizeof *few) {
        items = PyMem_Malloc(n * sizeof *items);
        if (!items) {
            PyErr_NoMemory();
            return 0;
        }
    }
    for (i = 0; i < n; i++)
        if (!(items[i] = add_value(values, PyTuple_GetItem(o, (Py_ssize_t)i))))
            break;
    if (i == n)
        number = extipy_container(values, EXTIPY_TUPLE, items, n);
    if (items != few)
        PyMem_Free(items);
    return number;
}

static size_t add_value(struct extipy_values *values, PyObject *o)
{
    if (o == Py_None)
        return extipy_none(values);
    if (PyBool_Check(o))
        return extipy_bool(values, o == Py_True);
    if (PyLong_CheckExact(o))
        return add_int(values, o);
    if (PyFloat_CheckExact(o))
        return extipy_float(values, PyFloat_AsDouble(o));
    if (PyUnicode_CheckExact(o))
        return add_encoded(values, PyUnicode_AsEncodedString(o, "utf-8", "surrogatepass"),
                           EXTIPY_STR);
    if (PyBytes_CheckExact(o))
        return add_bytes(values, o, EXTIPY_BYTES);
    if (PyTuple_CheckExact(o))
        return add_tuple(values, o);
    if (PyMemoryView_Check(o))
        return add_memory(values, o);
    PyErr_Format(PyExc_TypeError, "%R cannot be a value", (PyObject *)Py_TYPE(o));
    return 0;
}

struct extipy_values *pkg_values_make(PyObject *tuple, size_t *number)
{
    struct extipy_values *values;

    if (extipy_values_new(&values, NULL) < 0) {
        PyErr_NoMemory();
        return NULL;
    }
    *number = add_value(values, tuple);
    if (*number)
        return values;
    extipy_values_free(values);
    if (!PyErr_Occurred())
        PyErr_NoMemory();
    return NULL;
}

/* ---- in ---- */

static PyObject *read_int(const struct extipy_value *v)
{
    PyObject *method, *args, *named, *result = NULL;

    if (v->length <= 8)
        return PyLong_FromLongLong(v->integer);
    method = PyObject_GetAttrString((PyObject *)&PyLong_Type, "from_bytes");
    args = Py_BuildValue("(y#s)", v->bytes, (Py_ssize_t)v->length, "little");
    named = Py_BuildValue("{sO}", "signed", Py_True);
    if (method && args && named)
        result = PyObject_Call(method, args, named);
    Py_XDECREF(method);
    Py_XDECREF(args);
    Py_XDECREF(named);
    return result;
}

static PyObject *read_tuple(const struct extipy_values *values, const struct extipy_value *v)
{
    PyObject *tuple = PyTuple_New((Py_ssize_t)v->count), *item;

    for (size_t i = 0; tuple && i < v->count; i++) {
        item = pkg_values_read(values, v->items[i]);
        if (!item || PyTuple_SetItem(tuple, (Py_ssize_t)i, item) < 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

/* Another interpreter's object, which has the buffer protocol. */
static PyObject *read_object(struct extipy_object *object)
{
    PyThreadState *state;
    struct extipy_buffer *buffer;
    struct exti_error err;
    PyObject *view;
    int rc;

    state = PyEval_SaveThread();
    rc = extipy_buffer_of(&buffer, object, 0, NULL, &err);
    PyEval_RestoreThread(state);
    if (rc < 0)
        return pkg_state_raise(rc, err.message);
    view = pkg_memory_view(buffer);
    extipy_buffer_release(buffer);
    return view;
}

PyObject *pkg_values_read(const struct extipy_values *values, size_t number)
{
    struct extipy_value v = {.size = sizeof v};

    if (extipy_value(values, number, &v) < 0)
        return PyErr_Format(PyExc_SystemError, "there is no value %zu", number);
    switch (v.kind) {
    case EXTIPY_NONE:
        Py_RETURN_NONE;
    case EXTIPY_BOOL:
        return PyBool_FromLong((long)v.integer);
    case EXTIPY_INT:
        return read_int(&v);
    case EXTIPY_FLOAT:
        return PyFloat_FromDouble(v.real);
    case EXTIPY_STR:
        return PyUnicode_DecodeUTF8(v.bytes, (Py_ssize_t)v.length, "surrogatepass");
    case EXTIPY_BYTES:
        return PyBytes_FromStringAndSize(v.bytes, (Py_ssize_t)v.length);
    case EXTIPY_TUPLE:
        return read_tuple(values, &v);
    case EXTIPY_OBJECT:
        return read_object(v.object);
    case EXTIPY_BUFFER:
        return pkg_memory_view(v.buffer);
    default:
        return PyErr_Format(PyExc_SystemError, "a value of kind %d is not expected", (int)v.kind);
    }
}
