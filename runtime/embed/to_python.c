/* Containers that may hold themselves are made empty first, then tuples, whose items must be there,
 * and filled last.  No step recurses, so no depth of values overflows the stack. */
#include <stdlib.h>

#include "runtime/embed/big_int.h"
#include "runtime/embed/convert.h"
#include "runtime/embed/exporter.h"

/* What becomes of each value, by its number. */
struct making {
    struct extipy_ctx *c;
    const struct extipy_values *v;
    struct pyobj **made;  /* owned */
    unsigned char *state; /* of tuples */
    size_t *reached;      /* the numbers that the first leads to, itself the first */
    size_t count;
    size_t *stack;
};

enum { TUPLE_NEW, TUPLE_OPEN };

/* ---- what is reached ---- */

static void reach(struct making *m, size_t first)
{
    const struct extipy_node *node;

    m->state[first] = 1;
    m->reached[m->count++] = first;
    for (size_t i = 0; i < m->count; i++) {
        node = extipy__values_node(m->v, m->reached[i]);
        for (size_t k = 0; k < node->count; k++) {
            if (m->state[node->items[k]])
                continue;
            m->state[node->items[k]] = 1;
            m->reached[m->count++] = node->items[k];
        }
    }
    for (size_t i = 0; i < m->count; i++)
        m->state[m->reached[i]] = TUPLE_NEW;
}

/* ---- what has no items yet ---- */

static struct pyobj *own_object(struct extipy_ctx *c, const struct extipy_node *node)
{
    if (node->object->ctx != c || !node->object->object) {
        c->calls.PyErr_SetString(*c->calls.PyExc_TypeError, "the object is in another context");
        return NULL;
    }
    c->py.Py_IncRef(node->object->object);
    return node->object->object;
}

static struct pyobj *make_object(struct extipy_ctx *c, const struct extipy_node *node)
{
    const struct extipy_calls *calls = &c->calls;
    ptrdiff_t length = (ptrdiff_t)node->length;

    switch (node->kind) {
    case EXTIPY_BOOL:
        return calls->PyBool_FromLong((long)node->integer);
    case EXTIPY_INT:
        return length <= 8 ? calls->PyLong_FromLongLong(node->integer)
                           : extipy__big_int_new(c, node->bytes, node->length);
    case EXTIPY_FLOAT:
        return calls->PyFloat_FromDouble(node->real);
    case EXTIPY_STR:
        return calls->PyUnicode_Decode(node->bytes, length, "utf-8", "surrogatepass");
    case EXTIPY_BYTES:
        return calls->PyBytes_FromStringAndSize(node->bytes, length);
    case EXTIPY_LIST:
        return c->py.PyList_New(0);
    case EXTIPY_SET:
        return calls->PySet_New(NULL);
    case EXTIPY_DICT:
        return calls->PyDict_New();
    case EXTIPY_OBJECT:
        return own_object(c, node);
    case EXTIPY_BUFFER:
        return extipy__exporter_view(c, node->buffer);
    case EXTIPY_TUPLE: /* made apart */
    case EXTIPY_NONE:
        break;
    }
    c->py.Py_IncRef(c->py.none);
    return c->py.none;
}

static int make_objects(struct making *m)
{
    const struct extipy_node *node;

    for (size_t i = 0; i < m->count; i++) {
        node = extipy__values_node(m->v, m->reached[i]);
        if (node->kind == EXTIPY_TUPLE)
            continue;
        m->made[m->reached[i]] = make_object(m->c, node);
        if (!m->made[m->reached[i]])
            return -1;
    }
    return 0;
}

/* ---- tuples ---- */

static struct pyobj *make_tuple(const struct making *m, const struct extipy_node *node)
{
    struct pyobj *tuple = m->c->calls.PyTuple_New((ptrdiff_t)node->count);

    for (size_t i = 0; tuple && i < node->count; i++) {
        m->c->py.Py_IncRef(m->made[node->items[i]]);
        m->c->calls.PyTuple_SetItem(tuple, (ptrdiff_t)i, m->made[node->items[i]]);
    }
    return tuple;
}

/* A set that was made by hand cannot have a tuple within itself by tuples alone, as its items are
 * there before it; one that was read from Python could. */
static int make_tuples_of(struct making *m, size_t number)
{
    const struct extipy_node *node;
    size_t depth = 0, missing, at;

    m->stack[depth++] = number;
    while (depth) {
        at = m->stack[depth - 1];
        node = extipy__values_node(m->v, at);
        missing = 0;
        for (size_t i = 0; i < node->count && !m->made[at] && !missing; i++)
            missing = m->made[node->items[i]] ? 0 : node->items[i];
        if (!missing) {
            if (!m->made[at] && !(m->made[at] = make_tuple(m, node)))
                return -1;
            depth--;
        } else if (m->state[missing] == TUPLE_OPEN || missing == number) {
            m->c->calls.PyErr_SetString(*m->c->calls.PyExc_TypeError, "a tuple is within itself");
            return -1;
        } else {
            m->state[missing] = TUPLE_OPEN;
            m->stack[depth++] = missing;
        }
    }
    return 0;
}

static int make_tuples(struct making *m)
{
    for (size_t i = 0; i < m->count; i++)
        if (!m->made[m->reached[i]] && make_tuples_of(m, m->reached[i]) < 0)
            return -1;
    return 0;
}

/* ---- filling ---- */

static int fill_container(const struct making *m, size_t number)
{
    const struct extipy_node *node = extipy__values_node(m->v, number);
    const struct extipy_calls *calls = &m->c->calls;
    struct pyobj *container = m->made[number];
    int rc = 0;

    for (size_t i = 0; i < node->count && rc == 0; i++) {
        if (node->kind == EXTIPY_LIST) {
            rc = m->c->py.PyList_Append(container, m->made[node->items[i]]);
        } else if (node->kind == EXTIPY_SET) {
            rc = calls->PySet_Add(container, m->made[node->items[i]]);
        } else if (node->kind == EXTIPY_DICT) {
            rc = calls->PyDict_SetItem(container, m->made[node->items[i]],
                                       m->made[node->items[i + 1]]);
            i++;
        }
    }
    return rc;
}

static int fill_containers(const struct making *m)
{
    for (size_t i = 0; i < m->count; i++)
        if (fill_container(m, m->reached[i]) < 0)
            return -1;
    return 0;
}

struct pyobj *extipy__to_python(struct extipy_ctx *c, const struct extipy_values *v, size_t number)
{
    struct making m = {.c = c, .v = v};
    struct pyobj *object = NULL;
    size_t n = v->count + 1;

    m.made = calloc(n, sizeof *m.made);
    m.state = calloc(n, sizeof *m.state);
    m.reached = calloc(n, sizeof *m.reached);
    m.stack = calloc(n, sizeof *m.stack);
    if (!m.made || !m.state || !m.reached || !m.stack) {
        c->py.PyErr_NoMemory();
    } else {
        reach(&m, number);
        if (make_objects(&m) == 0 && make_tuples(&m) == 0 && fill_containers(&m) == 0)
            object = m.made[number];
        c->py.Py_IncRef(object);
        for (size_t i = 0; i < m.count; i++)
            c->py.Py_DecRef(m.made[m.reached[i]]);
    }
    free(m.made);
    free(m.state);
    free(m.reached);
    free(m.stack);
    return object;
}
