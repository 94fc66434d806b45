#include "bindings/python/ext/values.h"

#include <string.h>

#include "bindings/python/ext/arrays.h"
#include "bindings/python/ext/memory.h"

/* Deeper ones are left to pickle, which has its own limit. */
#define DEPTH_MAX 50
/* Bytes up to this size are copied twice; they are too few to matter. */
#define BYTES_COPIED (1 << 16)
/* Memory that comes up twice is left to pickle, which makes one object of it on the other side. */
#define VIEWS_MAX 8

/* ---- which ---- */

struct looking {
    PyObject *views[VIEWS_MAX]; /* those that came up */
    size_t view_count;
    int policy;
    int own; /* the package has looked at it */
};

static int is_new_view(struct looking *l, PyObject *o)
{
    if (l->own)
        return 1;
    if ((l->policy & PKG_COPY) || l->view_count == VIEWS_MAX)
        return 0;
    for (size_t i = 0; i < l->view_count; i++)
        if (l->views[i] == o)
            return 0;
    l->views[l->view_count++] = o;
    return 1;
}

static int can_be_shared(PyObject *view)
{
    Py_buffer buffer;
    int can = PyObject_GetBuffer(view, &buffer, PyBUF_FULL_RO) == 0;

    if (can) {
        can = !buffer.suboffsets;
        PyBuffer_Release(&buffer);
    }
    PyErr_Clear();
    return can;
}

/* -1: none that can be added. */
static int tag_of(struct looking *l, PyObject *o)
{
    if (o == Py_None)
        return PKG_NONE;
    if (PyLong_CheckExact(o))
        return PKG_INT;
    if (PyUnicode_CheckExact(o))
        return PKG_STR;
    if (PyFloat_CheckExact(o))
        return PKG_FLOAT;
    if (PyTuple_CheckExact(o))
        return PKG_TUPLE;
    if (PyBool_Check(o))
        return o == Py_True ? PKG_TRUE : PKG_FALSE;
    if (PyBytes_CheckExact(o))
        return PyBytes_Size(o) > BYTES_COPIED ? PKG_SHARED_BYTES : PKG_BYTES;
    if (PyMemoryView_Check(o))
        return is_new_view(l, o) && can_be_shared(o) ? PKG_VIEW : -1;
    return pkg_array_is(o) && is_new_view(l, o) ? PKG_ARRAY : -1;
}

static int plain_at(struct looking *l, PyObject *o, int depth)
{
    int tag = tag_of(l, o);

    if (tag != PKG_TUPLE)
        return tag >= 0;
    if (depth == DEPTH_MAX)
        return 0;
    for (Py_ssize_t i = 0, n = PyTuple_Size(o); i < n; i++)
        if (!plain_at(l, PyTuple_GetItem(o, i), depth + 1))
            return 0;
    return 1;
}

static void begin_looking(struct looking *l, int policy, int own)
{
    l->view_count = 0;
    l->policy = policy;
    l->own = own;
}

int pkg_values_plain(PyObject *o, int policy)
{
    struct looking l;

    begin_looking(&l, policy, 0);
    return plain_at(&l, o, 0);
}

/* ---- out ---- */

static int no_memory(void)
{
    PyErr_NoMemory();
    return -1;
}

static int add_raw(struct pkg_message *m, enum pkg_tag tag, const void *bytes, size_t n)
{
    return pkg_message_add_object(m, tag, bytes, n) < 0 ? no_memory() : 1;
}

/* Consumes `bytes`, which may be NULL. */
static int add_bytes(struct pkg_message *m, enum pkg_tag tag, PyObject *bytes)
{
    char *data;
    Py_ssize_t n;
    int rc = -1;

    if (bytes && PyBytes_AsStringAndSize(bytes, &data, &n) == 0)
        rc = pkg_message_add_text(m, tag, data, (size_t)n) < 0 ? no_memory() : 1;
    Py_XDECREF(bytes);
    return rc;
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

static int add_int(struct pkg_message *m, PyObject *o)
{
    int overflow;
    long long small = PyLong_AsLongLongAndOverflow(o, &overflow);

    return overflow ? add_bytes(m, PKG_BIG_INT, int_bytes(o))
                    : add_raw(m, PKG_INT, &small, sizeof small);
}

static int add_float(struct pkg_message *m, PyObject *o)
{
    double real = PyFloat_AsDouble(o);

    return add_raw(m, PKG_FLOAT, &real, sizeof real);
}

static int add_str(struct pkg_message *m, PyObject *o)
{
    Py_ssize_t n;
    const char *utf8 = PyUnicode_AsUTF8AndSize(o, &n);

    if (utf8)
        return pkg_message_add_text(m, PKG_STR, utf8, (size_t)n) < 0 ? no_memory() : 1;
    PyErr_Clear(); /* it has surrogates */
    return add_bytes(m, PKG_STR, PyUnicode_AsEncodedString(o, "utf-8", "surrogatepass"));
}

static int add_memory(struct pkg_message *m, enum pkg_tag tag, PyObject *o, int policy)
{
    struct extipy_buffer *buffer = pkg_memory_export(o, policy & PKG_READONLY);
    size_t index = m->buffer_count;

    if (!buffer)
        return -1;
    if (pkg_message_add_buffer(m, buffer) < 0)
        return no_memory();
    return add_raw(m, tag, &index, sizeof index);
}

static int add_at(struct pkg_message *m, struct looking *l, PyObject *o, int depth);

static int add_tuple(struct pkg_message *m, struct looking *l, PyObject *o, int depth)
{
    size_t n = (size_t)PyTuple_Size(o);
    int rc = depth == DEPTH_MAX ? 0 : add_raw(m, PKG_TUPLE, &n, sizeof n);

    for (size_t i = 0; i < n && rc == 1; i++)
        rc = add_at(m, l, PyTuple_GetItem(o, (Py_ssize_t)i), depth + 1);
    return rc;
}

static int add_at(struct pkg_message *m, struct looking *l, PyObject *o, int depth)
{
    int tag = tag_of(l, o);

    switch (tag) {
    case PKG_NONE:
    case PKG_FALSE:
    case PKG_TRUE:
        return add_raw(m, (enum pkg_tag)tag, NULL, 0);
    case PKG_INT:
        return add_int(m, o);
    case PKG_FLOAT:
        return add_float(m, o);
    case PKG_STR:
        return add_str(m, o);
    case PKG_BYTES:
        Py_INCREF(o);
        return add_bytes(m, PKG_BYTES, o);
    case PKG_TUPLE:
        return add_tuple(m, l, o, depth);
    case PKG_SHARED_BYTES:
    case PKG_VIEW:
    case PKG_ARRAY:
        return add_memory(m, (enum pkg_tag)tag, o, l->policy);
    default:
        return 0;
    }
}

int pkg_values_add(struct pkg_message *m, PyObject *o, int policy)
{
    struct looking l;

    if (o == Py_None)
        return 1;
    begin_looking(&l, policy, 0);
    return add_at(m, &l, o, 0);
}

int pkg_values_add_all(struct pkg_message *m, PyObject *const *objects, Py_ssize_t n, int policy)
{
    struct looking l;
    size_t count = (size_t)n;
    int rc = n ? add_raw(m, PKG_TUPLE, &count, sizeof count) : 1;

    begin_looking(&l, policy, 0);
    for (Py_ssize_t i = 0; i < n && rc == 1; i++)
        rc = add_at(m, &l, objects[i], 1);
    return rc;
}

int pkg_values_add_own(struct pkg_message *m, PyObject *tuple, int policy)
{
    struct looking l;
    int rc;

    begin_looking(&l, policy, 1);
    rc = add_at(m, &l, tuple, 0);
    if (rc == 1)
        return 0;
    pkg_message_clear(m);
    if (rc == 0)
        PyErr_SetString(PyExc_TypeError, "the message cannot be given to another interpreter");
    return -1;
}

/* ---- in ---- */

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
    case PKG_NONE:
        break;
    }
    Py_RETURN_NONE;
}

PyObject *pkg_values_read(const struct pkg_message *m)
{
    struct reading r = {m, pkg_message_bytes(m)};

    if (m->length)
        return read_at(&r);
    Py_RETURN_NONE;
}
