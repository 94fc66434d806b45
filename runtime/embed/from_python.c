/* Objects become values in the order in which they are found, each once, so that sharing and cycles
 * are kept; and what is found is kept alive until the end, so that no address is used twice. */
#include <stdlib.h>

#include "runtime/embed/convert.h"

struct found {
    struct pyobj *object; /* a reference */
    size_t number;
};

struct reading {
    struct extipy_ctx *c;
    struct extipy_values *v;
    struct found *found; /* in order; the containers among them are to be looked into */
    size_t count, room;
    size_t *slots; /* a hash table of `found` by address, at most half full: index + 1, or 0 */
    size_t mask;
};

/* ---- what is known ---- */

static size_t *find_slot(const struct reading *r, const struct pyobj *object)
{
    size_t i = (size_t)(((uint64_t)(uintptr_t)object * 0x9E3779B97F4A7C15u) >> 20) & r->mask;

    while (r->slots[i] && r->found[r->slots[i] - 1].object != object)
        i = (i + 1) & r->mask;
    return &r->slots[i];
}

static int grow_found(struct reading *r)
{
    size_t room = r->room ? r->room * 2 : 32;
    struct found *found = realloc(r->found, room * sizeof *found);
    size_t *slots = calloc(room * 2, sizeof *slots);

    if (found)
        r->found = found;
    if (!found || !slots) {
        free(slots);
        r->c->py.PyErr_NoMemory();
        return -1;
    }
    free(r->slots);
    r->slots = slots;
    r->mask = room * 2 - 1;
    r->room = room;
    for (size_t i = 0; i < r->count; i++)
        *find_slot(r, found[i].object) = i + 1;
    return 0;
}

/* ---- one object ---- */

static struct pyobj *big_int_bytes(const struct extipy_ctx *c, struct pyobj *object)
{
    const struct pyrt_api *py = &c->py;
    struct pyobj *bits, *to = NULL, *args = NULL, *kwargs = NULL, *yes = NULL, *bytes = NULL;

    bits = py->PyObject_CallMethod(object, "bit_length", NULL);
    if (bits) {
        to = py->PyObject_GetAttrString(object, "to_bytes");
        args = c->calls.PyTuple_New(2);
        kwargs = c->calls.PyDict_New();
        yes = c->calls.PyBool_FromLong(1);
    }
    if (to && args && kwargs && yes && py->PyDict_SetItemString(kwargs, "signed", yes) == 0 &&
        c->calls.PyTuple_SetItem(
            args, 0, c->calls.PyLong_FromLongLong(py->PyLong_AsLong(bits) / 8 + 1)) == 0 &&
        c->calls.PyTuple_SetItem(args, 1, c->calls.PyUnicode_Decode("little", 6, "utf-8", NULL)) ==
            0)
        bytes = c->calls.PyObject_Call(to, args, kwargs);
    py->Py_DecRef(yes);
    py->Py_DecRef(kwargs);
    py->Py_DecRef(args);
    py->Py_DecRef(to);
    py->Py_DecRef(bits);
    return bytes;
}

/* Consumes `bytes`, which may be NULL with an exception set. */
static size_t add_contents(struct reading *r, struct pyobj *bytes,
                           size_t (*add)(struct extipy_values *, const void *, size_t))
{
    size_t number = 0;
    ptrdiff_t length;
    char *at;

    if (!bytes)
        return 0;
    if (r->c->calls.PyBytes_AsStringAndSize(bytes, &at, &length) == 0) {
        number = add(r->v, at, (size_t)length);
        if (!number)
            r->c->py.PyErr_NoMemory();
    }
    r->c->py.Py_DecRef(bytes);
    return number;
}

static size_t add_text(struct extipy_values *v, const void *bytes, size_t length)
{
    return extipy_str(v, bytes, length);
}

static size_t add_int(struct reading *r, struct pyobj *object)
{
    int overflow;
    long long n = r->c->calls.PyLong_AsLongLongAndOverflow(object, &overflow);

    return overflow ? add_contents(r, big_int_bytes(r->c, object), extipy_big_int)
                    : extipy_int(r->v, n);
}

static size_t add_object(struct reading *r, struct pyobj *object)
{
    struct extipy_object *handle = extipy__object_new(r->c, object);

    return handle ? extipy__values_object(r->v, handle) : 0;
}

/* A container is empty at first.  0: an exception is set. */
static size_t add_value(struct reading *r, struct pyobj *object)
{
    const struct extipy_calls *calls = &r->c->calls;
    struct pyobj *type = calls->PyObject_Type(object);
    size_t number;

    r->c->py.Py_DecRef(type); /* the object keeps it */
    if (type == calls->PyUnicode_Type)
        return add_contents(r, calls->PyUnicode_AsEncodedString(object, "utf-8", "surrogatepass"),
                            add_text);
    if (type == calls->PyBytes_Type) {
        r->c->py.Py_IncRef(object);
        return add_contents(r, object, extipy_bytes);
    }
    if (type == r->c->py.long_type)
        number = add_int(r, object);
    else if (object == r->c->py.none)
        number = extipy_none(r->v);
    else if (type == calls->PyBool_Type)
        number = extipy_bool(r->v, r->c->py.PyLong_AsLong(object) != 0);
    else if (type == calls->PyFloat_Type)
        number = extipy_float(r->v, calls->PyFloat_AsDouble(object));
    else if (type == calls->PyTuple_Type)
        number = extipy_container(r->v, EXTIPY_TUPLE, NULL, 0);
    else if (type == calls->PyList_Type)
        number = extipy_container(r->v, EXTIPY_LIST, NULL, 0);
    else if (type == calls->PySet_Type)
        number = extipy_container(r->v, EXTIPY_SET, NULL, 0);
    else if (type == calls->PyDict_Type)
        number = extipy_container(r->v, EXTIPY_DICT, NULL, 0);
    else
        number = add_object(r, object);
    if (!number && !r->v->fault)
        r->v->fault = EXTI_E_NOMEM;
    return number;
}

/* The number of an object that is new or known; 0: an exception is set. */
static size_t find_value(struct reading *r, struct pyobj *object)
{
    struct found new;
    size_t *slot;

    if (r->count == r->room && grow_found(r) < 0)
        return 0;
    slot = find_slot(r, object);
    if (*slot)
        return r->found[*slot - 1].number;
    new = (struct found){object, add_value(r, object)};
    if (!new.number)
        return 0;
    r->c->py.Py_IncRef(object);
    r->found[r->count++] = new;
    *slot = r->count;
    return new.number;
}

/* ---- containers ---- */

static int put_item(struct reading *r, size_t container, struct pyobj *object)
{
    size_t number = find_value(r, object);
    struct extipy_node *node;

    if (!number)
        return -1;
    node = &r->v->nodes[container - 1];
    if (extipy__values_reserve(r->v, container, node->count + 1))
        return -1;
    node->items[node->count++] = number;
    return 0;
}

/* Of a tuple that others cannot change. */
static int read_items(struct reading *r, size_t container, struct pyobj *object)
{
    struct pyobj *tuple = r->c->calls.PySequence_Tuple(object);
    int rc = tuple ? 0 : -1;

    for (ptrdiff_t i = 0; rc == 0 && i < r->c->calls.PyTuple_Size(tuple); i++)
        rc = put_item(r, container, r->c->calls.PyTuple_GetItem(tuple, i));
    r->c->py.Py_DecRef(tuple);
    return rc;
}

static int read_pairs(struct reading *r, size_t container, struct pyobj *object)
{
    struct pyobj *dict = r->c->calls.PyDict_Copy(object), *key, *value;
    int rc = dict ? 0 : -1;
    ptrdiff_t at = 0;

    while (rc == 0 && r->c->calls.PyDict_Next(dict, &at, &key, &value)) {
        rc = put_item(r, container, key);
        if (rc == 0)
            rc = put_item(r, container, value);
    }
    r->c->py.Py_DecRef(dict);
    return rc;
}

static int read_containers(struct reading *r)
{
    int rc = 0;

    for (size_t i = 0; i < r->count && rc == 0; i++) {
        struct found f = r->found[i];
        enum extipy_kind kind = r->v->nodes[f.number - 1].kind;

        if (kind == EXTIPY_DICT)
            rc = read_pairs(r, f.number, f.object);
        else if (kind >= EXTIPY_TUPLE && kind <= EXTIPY_SET)
            rc = read_items(r, f.number, f.object);
    }
    return rc;
}

size_t extipy__from_python(struct extipy_ctx *c, struct extipy_values *v, struct pyobj *object)
{
    struct reading r = {.c = c, .v = v};
    size_t number = find_value(&r, object);

    if (number && read_containers(&r) < 0)
        number = 0;
    if (v->fault)
        c->py.PyErr_NoMemory();
    for (size_t i = 0; i < r.count; i++)
        c->py.Py_DecRef(r.found[i].object);
    free(r.found);
    free(r.slots);
    return v->fault ? 0 : number;
}
