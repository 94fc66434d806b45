#include "bindings/python/ext/own.h"

#include <stdlib.h>

#include "bindings/python/ext/natives.h"
#include "bindings/python/ext/release.h"
#include "bindings/python/ext/types.h"

static PyObject *kinds; /* numbers of types (types.h) */
static uint32_t last_kind;
static int ended;

/* ---- what other interpreters call ---- */

static int enter(void)
{
    return (int)PyGILState_Ensure();
}

static void leave(int state)
{
    PyGILState_Release((PyGILState_STATE)state);
}

static void settle(void *unused)
{
    (void)unused;
    pkg_own_settle_asked();
}

static void ring(struct pkg_heap *heap)
{
    if (pkg_state.ctx)
        extipy_call_soon(pkg_state.ctx, settle, heap); /* or the next border, without memory */
    else
        pkg_release_ring();
}

/* ---- the heap ---- */

static struct pkg_heap *open_heap(void)
{
    struct pkg_heap *heap = calloc(1, sizeof *heap);

    if (!heap || pkg_natives_open(&heap->links) < 0) {
        free(heap);
        PyErr_NoMemory();
        return NULL;
    }
    heap->id = pkg_state.id;
    heap->enter = enter;
    heap->leave = leave;
    heap->ring = ring;
    pkg_heap_begin(heap, pkg_state.core->heaps);
    return heap;
}

/* The package's own module, as it has to know when the interpreter ends. */
static int prepare(void)
{
    PyObject *module;

    if (ended) {
        PyErr_SetString(pkg_state.error, "the interpreter is ending");
        return -1;
    }
    if (!kinds && !(kinds = PyDict_New()))
        return -1;
    pkg_release_also(pkg_own_settle_asked);
    if (!pkg_state.ctx && !pkg_release_start())
        return -1;
    module = PyImport_ImportModule("extisolate._proxies");
    Py_XDECREF(module);
    return module ? 0 : -1;
}

struct pkg_heap *pkg_own_heap(void)
{
    if (!pkg_state.heap && prepare() == 0 && !pkg_state.heap)
        pkg_state.heap = open_heap();
    return pkg_state.heap;
}

/* ---- handles ---- */

static int kind_of(uint32_t *kind, PyObject *type)
{
    PyObject *known = pkg_types_get(kinds, type), *number;
    int rc;

    if (known)
        *kind = (uint32_t)PyLong_AsUnsignedLong(known);
    if (known || PyErr_Occurred())
        return known ? 0 : -1;
    number = PyLong_FromUnsignedLong(*kind = ++last_kind);
    rc = number ? pkg_types_set(kinds, type, number) : -1;
    Py_XDECREF(number);
    return rc;
}

struct pkg_object *pkg_own_handle(PyObject *object)
{
    struct pkg_heap *heap = pkg_own_heap();
    struct pkg_object *o = heap ? pkg_object_find(heap, object) : NULL;
    uint32_t kind;

    if (!heap || o)
        return o;
    if (kind_of(&kind, (PyObject *)Py_TYPE(object)) < 0)
        return NULL;
    Py_INCREF(object); /* the link's */
    o = pkg_object_new(heap, object);
    if (!o) {
        Py_DECREF(object);
        if (heap->ended)
            PyErr_SetString(pkg_state.error, "the interpreter is ending");
        else
            PyErr_NoMemory();
        return NULL;
    }
    o->kind = kind;
    return o;
}

PyObject *pkg_own_object(const struct pkg_object *o)
{
    PyObject *object = o->native;

    if (object)
        Py_INCREF(object);
    else
        PyErr_SetString(PyExc_ReferenceError,
                        "the object has ended: nothing but a circle through interpreters, in which "
                        "it was, referred to it");
    return object;
}

/* ---- settling ---- */

static void drain(struct pkg_heap *heap)
{
    PyObject *type, *value, *trace;
    void *dead = exti_links_next_dead(heap->links);

    if (!dead)
        return;
    PyErr_Fetch(&type, &value, &trace);
    for (; dead; dead = heap->links ? exti_links_next_dead(heap->links) : NULL)
        Py_DECREF((PyObject *)dead);
    PyErr_Restore(type, value, trace);
}

void pkg_own_settle(void)
{
    struct pkg_heap *heap = pkg_state.heap;

    if (!heap)
        return;
    pkg_heap_settle(heap);
    drain(heap);
}

void pkg_own_settle_asked(void)
{
    if (!pkg_state.heap)
        return;
    atomic_store(&pkg_state.heap->rung, false);
    pkg_own_settle();
}

void pkg_own_end(void)
{
    struct pkg_heap *heap = pkg_state.heap;

    ended = 1;
    if (!heap)
        return;
    pkg_heap_end(heap);
    drain(heap);
    pkg_state.heap = NULL;
    pkg_heap_close(heap);
}

void pkg_own_forked(void)
{
    pkg_state.heap = NULL; /* its objects stay as they are */
}
