#include "bindings/python/ext/reading.h"

#include <string.h>

#include "bindings/python/ext/arrays.h"
#include "bindings/python/ext/linked.h"
#include "bindings/python/ext/memory.h"

PyObject *pkg_builtin_named(PyObject *name)
{
    PyObject *builtins = PyEval_GetBuiltins(); /* borrowed */

    return PyDict_Check(builtins) ? PyDict_GetItemWithError(builtins, name) : NULL;
}

struct reading {
    const struct pkg_message *m;
    const unsigned char *at;
};

static size_t read_size(struct reading *r)
{
    size_t n;

    memcpy(&n, r->at, sizeof n);
    r->at += sizeof n;
    return n;
}

static const char *read_text(struct reading *r, Py_ssize_t *n)
{
    const char *text;

    *n = (Py_ssize_t)read_size(r);
    text = (const char *)r->at;
    r->at += *n;
    return text;
}

static PyObject *read_int(struct reading *r)
{
    long long small;

    memcpy(&small, r->at, sizeof small);
    r->at += sizeof small;
    return PyLong_FromLongLong(small);
}

static PyObject *read_float(struct reading *r)
{
    double real;

    memcpy(&real, r->at, sizeof real);
    r->at += sizeof real;
    return PyFloat_FromDouble(real);
}

static PyObject *read_big_int(struct reading *r)
{
    PyObject *method, *args, *named, *result = NULL;
    Py_ssize_t n;
    const char *bytes = read_text(r, &n);

    method = PyObject_GetAttrString((PyObject *)&PyLong_Type, "from_bytes");
    args = Py_BuildValue("(Ns)", PyBytes_FromStringAndSize(bytes, n), "little");
    named = Py_BuildValue("{sO}", "signed", Py_True);
    if (method && args && named)
        result = PyObject_Call(method, args, named);
    Py_XDECREF(method);
    Py_XDECREF(args);
    Py_XDECREF(named);
    return result;
}

static PyObject *read_memory(struct reading *r, enum pkg_tag tag)
{
    struct extipy_buffer *buffer = r->m->buffers[read_size(r)];
    struct extipy_buffer_info info = {.size = sizeof info};
    PyObject *memory, *object;

    if (tag == PKG_SHARED_BYTES) {
        extipy_buffer_info(buffer, &info);
        return PyBytes_FromStringAndSize(info.data, (Py_ssize_t)info.length);
    }
    memory = pkg_memory_import(buffer);
    if (!memory)
        return NULL;
    object = tag == PKG_ARRAY ? pkg_array_new(memory) : PyMemoryView_FromObject(memory);
    Py_DECREF(memory);
    return object;
}

static PyObject *read_at(struct reading *r);

static PyObject *read_tuple(struct reading *r)
{
    size_t n = read_size(r);
    PyObject *tuple = PyTuple_New((Py_ssize_t)n), *item;

    for (size_t i = 0; tuple && i < n; i++) {
        item = read_at(r);
        if (!item || PyTuple_SetItem(tuple, (Py_ssize_t)i, item) < 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *read_complex(struct reading *r)
{
    double parts[2];

    memcpy(parts, r->at, sizeof parts);
    r->at += sizeof parts;
    return PyComplex_FromDoubles(parts[0], parts[1]);
}

static PyObject *read_slice(struct reading *r)
{
    PyObject *start = read_at(r), *stop = start ? read_at(r) : NULL;
    PyObject *step = stop ? read_at(r) : NULL, *slice = NULL;

    if (step)
        slice = PySlice_New(start, stop, step);
    Py_XDECREF(start);
    Py_XDECREF(stop);
    Py_XDECREF(step);
    return slice;
}

static PyObject *read_packed(struct reading *r)
{
    PyObject *tuple = read_at(r), *object = NULL;

    if (tuple)
        object = PyObject_CallObject(pkg_state.unpacked, tuple);
    Py_XDECREF(tuple);
    return object;
}

static PyObject *read_builtin(struct reading *r)
{
    Py_ssize_t n;
    const char *text = read_text(r, &n);
    PyObject *name = PyUnicode_FromStringAndSize(text, n), *type = NULL;

    if (name && (type = pkg_builtin_named(name)))
        Py_INCREF(type);
    else if (name && !PyErr_Occurred())
        PyErr_Format(PyExc_NameError, "this interpreter has no builtin %R", name);
    Py_XDECREF(name);
    return type;
}

static PyObject *singleton(PyObject *o)
{
    Py_INCREF(o);
    return o;
}

static PyObject *read_at(struct reading *r)
{
    enum pkg_tag tag = (enum pkg_tag) * r->at++;
    const char *text;
    Py_ssize_t n;

    switch (tag) {
    case PKG_FALSE:
    case PKG_TRUE:
        return PyBool_FromLong(tag == PKG_TRUE);
    case PKG_INT:
        return read_int(r);
    case PKG_BIG_INT:
        return read_big_int(r);
    case PKG_FLOAT:
        return read_float(r);
    case PKG_STR:
        text = read_text(r, &n);
        return PyUnicode_DecodeUTF8(text, n, "surrogatepass");
    case PKG_BYTES:
        text = read_text(r, &n);
        return PyBytes_FromStringAndSize(text, n);
    case PKG_TUPLE:
        return read_tuple(r);
    case PKG_SHARED_BYTES:
    case PKG_VIEW:
    case PKG_ARRAY:
        return read_memory(r, tag);
    case PKG_OBJECT:
        return pkg_linked_object(r->m->objects[read_size(r)]);
    case PKG_PACKED:
        return read_packed(r);
    case PKG_COMPLEX:
        return read_complex(r);
    case PKG_SLICE:
        return read_slice(r);
    case PKG_BUILTIN:
        return read_builtin(r);
    case PKG_ELLIPSIS:
        return singleton(Py_Ellipsis);
    case PKG_NOT_IMPLEMENTED:
        return singleton(Py_NotImplemented);
    case PKG_NONE:
        break;
    }
    Py_RETURN_NONE;
}

int pkg_read_few(const struct pkg_message *m, PyObject **items, size_t *n)
{
    struct reading r = {m, pkg_message_bytes(m)};
    size_t count;

    *n = 0;
    if (!m->length)
        return 1;
    if (*r.at++ != PKG_TUPLE || (count = read_size(&r)) > PKG_FEW)
        return 0;
    while (*n < count && (items[*n] = read_at(&r)))
        ++*n;
    return *n == count ? 1 : -1;
}

PyObject *pkg_read(const struct pkg_message *m)
{
    struct reading r = {m, pkg_message_bytes(m)};

    if (m->length)
        return read_at(&r);
    Py_RETURN_NONE;
}
