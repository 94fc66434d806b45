/* Objects become values in the order in which they are found, each once, so that sharing and cycles
 * are kept; and what is found is kept alive until the end, so that no address is used twice. */
#include <stdlib.h>

#include "runtime/embed/big_int.h"
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
    size_t room = r->room ? r->room * 2 : 8;
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

    return overflow ? add_contents(r, extipy__big_int_bytes(r->c, object), extipy_big_int)
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

/* Remembers the number of an object, which is kept alive. */
static int note(struct reading *r, struct pyobj *object, size_t number)
{
    if (r->count == r->room && grow_found(r) < 0)
        return -1;
    r->c->py.Py_IncRef(object);
    r->found[r->count++] = (struct found){object, number};
    *find_slot(r, object) = r->count;
    return 0;
}

/* The number of an object that is new or known; 0: an exception is set. */
static size_t find_value(struct reading *r, struct pyobj *object)
{
    const size_t known = *find_slot(r, object);
    size_t number;

    if (known)
        return r->found[known - 1].number;
    number = add_value(r, object);
    return number && note(r, object, number) == 0 ? number : 0;
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

static int is_container(const struct reading *r, size_t number)
{
    const enum extipy_kind kind = r->v->nodes[number - 1].kind;

    return kind >= EXTIPY_TUPLE && kind <= EXTIPY_DICT;
}

static int read_containers(struct reading *r)
{
    int rc = 0;

    for (size_t i = 0; i < r->count && rc == 0; i++) {
        struct found f = r->found[i];

        if (r->v->nodes[f.number - 1].kind == EXTIPY_DICT)
            rc = read_pairs(r, f.number, f.object);
        else if (is_container(r, f.number))
            rc = read_items(r, f.number, f.object);
    }
    return rc;
}

size_t extipy__from_python(struct extipy_ctx *c, struct extipy_values *v, struct pyobj *object)
{
    struct reading r = {.c = c, .v = v};
    size_t number = add_value(&r, object);

    if (number && is_container(&r, number) &&
        (note(&r, object, number) < 0 || read_containers(&r) < 0))
        number = 0;
    if (v->fault)
        c->py.PyErr_NoMemory();
    for (size_t i = 0; i < r.count; i++)
        c->py.Py_DecRef(r.found[i].object);
    free(r.found);
    free(r.slots);
    return v->fault ? 0 : number;
}
