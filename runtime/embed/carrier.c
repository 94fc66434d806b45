#include "runtime/embed/carrier.h"

/* What every object begins with, whose size depends on the build and which is at most as large as
 * the room, and the pointer. */
struct carrier {
    unsigned char head[120];
    void *carried;
};

static int head_fits(const struct extipy_ctx *c)
{
    struct pyobj *size = c->py.PyObject_GetAttrString(c->calls.PyBaseObject_Type, "__basicsize__");
    long n = size ? c->py.PyLong_AsLong(size) : -1;

    c->py.Py_DecRef(size);
    return n > 0 && (size_t)n <= offsetof(struct carrier, carried);
}

struct pyobj *extipy__carrier_type(const struct extipy_ctx *c, struct extipy_type_spec *spec)
{
    spec->basicsize = (int)sizeof(struct carrier);
    spec->flags = EXTIPY_TYPE_NO_CALL;
    if (head_fits(c))
        return c->calls.PyType_FromSpec(spec);
    c->calls.PyErr_SetString(*c->py.runtime_error,
                             "this build of Python has larger objects than are known");
    return NULL;
}

struct pyobj *extipy__carrier_new(const struct extipy_ctx *c, struct pyobj *type, void *carried)
{
    struct pyobj *object = c->calls.PyType_GenericAlloc(type, 0);

    if (object)
        ((struct carrier *)(void *)object)->carried = carried;
    return object;
}

void *extipy__carried(const struct pyobj *carrier)
{
    return ((const struct carrier *)(const void *)carrier)->carried;
}
