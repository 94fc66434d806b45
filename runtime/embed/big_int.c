#include "runtime/embed/big_int.h"

/* (first, "little"); consumes `first`, which may be NULL with an exception set. */
static struct pyobj *pack(const struct extipy_ctx *c, struct pyobj *first)
{
    const struct extipy_calls *calls = &c->calls;
    struct pyobj *order = first ? calls->PyUnicode_Decode("little", 6, "utf-8", NULL) : NULL;
    struct pyobj *args = order ? calls->PyTuple_New(2) : NULL;

    if (!args) {
        c->py.Py_DecRef(order);
        c->py.Py_DecRef(first);
        return NULL;
    }
    calls->PyTuple_SetItem(args, 0, first);
    calls->PyTuple_SetItem(args, 1, order);
    return args;
}

/* {"signed": True} */
static struct pyobj *say_signed(const struct extipy_ctx *c)
{
    struct pyobj *kwargs = c->calls.PyDict_New(), *yes = c->calls.PyBool_FromLong(1);

    if (kwargs && c->py.PyDict_SetItemString(kwargs, "signed", yes) != 0) {
        c->py.Py_DecRef(kwargs);
        kwargs = NULL;
    }
    c->py.Py_DecRef(yes);
    return kwargs;
}

/* Calls a method of int with the arguments that from_bytes and to_bytes share; consumes `first`. */
static struct pyobj *convert(const struct extipy_ctx *c, struct pyobj *object, const char *method,
                             struct pyobj *first)
{
    struct pyobj *args = pack(c, first), *kwargs = args ? say_signed(c) : NULL;
    struct pyobj *function = kwargs ? c->py.PyObject_GetAttrString(object, method) : NULL;
    struct pyobj *result = function ? c->calls.PyObject_Call(function, args, kwargs) : NULL;

    c->py.Py_DecRef(function);
    c->py.Py_DecRef(kwargs);
    c->py.Py_DecRef(args);
    return result;
}

struct pyobj *extipy__big_int_new(const struct extipy_ctx *c, const char *bytes, size_t length)
{
    return convert(c, c->py.long_type, "from_bytes",
                   c->calls.PyBytes_FromStringAndSize(bytes, (ptrdiff_t)length));
}

struct pyobj *extipy__big_int_bytes(const struct extipy_ctx *c, struct pyobj *integer)
{
    struct pyobj *bits = c->py.PyObject_CallMethod(integer, "bit_length", NULL), *length = NULL;

    if (bits)
        length = c->calls.PyLong_FromLongLong(c->py.PyLong_AsLong(bits) / 8 + 1);
    c->py.Py_DecRef(bits);
    return convert(c, integer, "to_bytes", length);
}
