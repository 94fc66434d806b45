#include "bindings/python/ext/values.h"

#include <string.h>

#include "bindings/python/ext/arrays.h"
#include "bindings/python/ext/linked.h"
#include "bindings/python/ext/memory.h"
#include "bindings/python/ext/own.h"
#include "bindings/python/ext/reading.h"
#include "bindings/python/ext/types.h"

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
        can = !buffer.suboffsets && !pkg_memory_has_objects(buffer.format);
        PyBuffer_Release(&buffer);
    }
    PyErr_Clear();
    return can;
}

/* Functions of builtins that do the same wherever they run. */
static int is_same_anywhere(PyObject *name)
{
    static const char *const names[] = {"abs",  "all",    "any",    "ascii", "bin",  "callable",
                                        "chr",  "divmod", "hash",   "hex",   "iter", "len",
                                        "max",  "min",    "next",   "oct",   "ord",  "pow",
                                        "repr", "round",  "sorted", "sum",   NULL};

    for (size_t i = 0; names[i]; i++)
        if (PyUnicode_CompareWithASCIIString(name, names[i]) == 0)
            return 1;
    return 0;
}

static int is_builtin(PyObject *o)
{
    const int is_type = PyType_Check(o);
    PyObject *name;
    int is;

    if (is_type ? (PyType_GetFlags((PyTypeObject *)o) & Py_TPFLAGS_HEAPTYPE) != 0
                : Py_TYPE(o) != &PyCFunction_Type)
        return 0;
    name = PyObject_GetAttrString(o, "__name__");
    is = name && pkg_builtin_named(name) == o && (is_type || is_same_anywhere(name));
    Py_XDECREF(name);
    PyErr_Clear();
    return is;
}

/* What objects of a type are, as the package says: of which copies are given, or given and got. */
enum data_kind { OBJECT, DATA, VALUE };

/* A metaclass that fails has objects.  Returns -1, and the exception stays, if that is one which
 * nobody may pass over, such as KeyboardInterrupt. */
static int pass_over(void)
{
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception))
        return -1;
    PyErr_Clear();
    return 0;
}

static long kind_of_data(PyObject *type)
{
    PyObject *known = pkg_types_get(pkg_state.data_types, type), *found;
    long kind = OBJECT;

    if (known)
        return PyLong_AsLong(known);
    found = PyErr_Occurred() ? NULL : PyObject_CallFunction(pkg_state.data_kind, "O", type);
    if (found && pkg_types_set(pkg_state.data_types, type, found) == 0)
        kind = PyLong_AsLong(found);
    Py_XDECREF(found);
    return kind;
}

static int given_tag(struct looking *l, PyObject *o)
{
    int tag = -1;

    if (PyMemoryView_Check(o))
        tag = is_new_view(l, o) && can_be_shared(o) ? PKG_VIEW : -1;
    else if (pkg_array_is(o))
        tag = is_new_view(l, o) ? PKG_ARRAY : -1;
    PyErr_Clear();
    return tag;
}

static int object_tag(struct looking *l, PyObject *o)
{
    const int is_given = l->policy & PKG_GIVEN;
    int tag = is_given ? given_tag(l, o) : -1;
    long kind;

    if (tag >= 0)
        return tag;
    kind = PyType_Check(o) ? OBJECT : kind_of_data((PyObject *)Py_TYPE(o));
    if (pass_over() < 0)
        return -1;
    return kind == VALUE || (kind == DATA && is_given) ? PKG_PACKED : PKG_OBJECT;
}

static int linked_tag(struct looking *l, PyObject *o)
{
    if (pkg_linked_is(o))
        return PKG_OBJECT;
    if (PyComplex_CheckExact(o))
        return PKG_COMPLEX;
    if (PySlice_Check(o))
        return PKG_SLICE;
    if (o == Py_Ellipsis)
        return PKG_ELLIPSIS;
    if (o == Py_NotImplemented)
        return PKG_NOT_IMPLEMENTED;
    if (is_builtin(o))
        return PKG_BUILTIN;
    return object_tag(l, o);
}

/* -1: none that can be added, or an exception is set. */
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
    if (l->policy & PKG_LINKED)
        return linked_tag(l, o);
    if (PyMemoryView_Check(o))
        return is_new_view(l, o) && can_be_shared(o) ? PKG_VIEW : -1;
    if (pkg_array_is(o))
        return is_new_view(l, o) ? PKG_ARRAY : -1;
    return pkg_linked_is(o) ? PKG_OBJECT : -1;
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

/* In line, with the number of bytes. */
static inline int add_raw(struct pkg_message *m, enum pkg_tag tag, const void *bytes, size_t n)
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

/* The object itself, wherever it is. */
static int add_handle(struct pkg_message *m, PyObject *o)
{
    struct pkg_object *handle =
        pkg_linked_is(o) ? pkg_object_keep(pkg_linked_handle(o)) : pkg_own_handle(o);
    size_t index = m->object_count;

    if (!handle)
        return -1;
    if (pkg_message_add_handle(m, handle) < 0)
        return no_memory();
    return add_raw(m, PKG_OBJECT, &index, sizeof index);
}

static int add_packed(struct pkg_message *m, PyObject *o)
{
    PyObject *tuple = PyObject_CallFunctionObjArgs(pkg_state.packed, o, NULL);
    struct looking l;
    int rc = -1;

    if (tuple) {
        begin_looking(&l, 0, 1);
        rc = add_raw(m, PKG_PACKED, NULL, 0) < 0 ? -1 : add_at(m, &l, tuple, 0);
    }
    Py_XDECREF(tuple);
    return rc;
}

static int add_complex(struct pkg_message *m, PyObject *o)
{
    double parts[2] = {PyComplex_RealAsDouble(o), PyComplex_ImagAsDouble(o)};

    return add_raw(m, PKG_COMPLEX, parts, sizeof parts);
}

static int add_builtin(struct pkg_message *m, PyObject *o)
{
    PyObject *name = PyObject_GetAttrString(o, "__name__");
    PyObject *bytes = name ? PyUnicode_AsUTF8String(name) : NULL;

    Py_XDECREF(name);
    return add_bytes(m, PKG_BUILTIN, bytes);
}

static int add_slice(struct pkg_message *m, struct looking *l, PyObject *o, int depth)
{
    static const char *const names[] = {"start", "stop", "step"};
    int rc = add_raw(m, PKG_SLICE, NULL, 0);
    PyObject *part;

    for (int i = 0; i < 3 && rc == 1; i++) {
        part = PyObject_GetAttrString(o, names[i]);
        rc = part ? add_at(m, l, part, depth) : -1;
        Py_XDECREF(part);
    }
    return rc;
}

static int add_tuple(struct pkg_message *m, struct looking *l, PyObject *o, int depth)
{
    size_t n = (size_t)PyTuple_Size(o);
    int rc;

    if (depth == DEPTH_MAX)
        return l->policy & PKG_LINKED ? add_handle(m, o) : 0;
    rc = add_raw(m, PKG_TUPLE, &n, sizeof n);
    for (size_t i = 0; i < n && rc == 1; i++)
        rc = add_at(m, l, PyTuple_GetItem(o, (Py_ssize_t)i), depth + 1);
    return rc;
}

static int add_at(struct pkg_message *m, struct looking *l, PyObject *o, int depth)
{
    int tag;

    if (PyLong_CheckExact(o)) /* the most usual ones, so that no table of jumps is in their way */
        return add_int(m, o);
    tag = tag_of(l, o);
    switch (tag) {
    case PKG_NONE:
    case PKG_FALSE:
    case PKG_TRUE:
    case PKG_ELLIPSIS:
    case PKG_NOT_IMPLEMENTED:
        return add_raw(m, (enum pkg_tag)tag, NULL, 0);
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
    case PKG_OBJECT:
        return add_handle(m, o);
    case PKG_PACKED:
        return add_packed(m, o);
    case PKG_COMPLEX:
        return add_complex(m, o);
    case PKG_SLICE:
        return add_slice(m, l, o, depth);
    case PKG_BUILTIN:
        return add_builtin(m, o);
    default:
        return PyErr_Occurred() ? -1 : 0;
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
