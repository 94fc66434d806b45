#include "bindings/python/ext/linked.h"

#include "bindings/python/ext/own.h"
#include "bindings/python/ext/state.h"

static PyTypeObject *linked_type, *proxy_type, *shared_type;
static vectorcallfunc invoke;
static PyObject *classes;     /* of proxies, by the kinds of their objects */
static struct proxy *proxies; /* all; with the GIL */

static struct proxy *as_proxy(PyObject *o)
{
    return (struct proxy *)(void *)o;
}

int pkg_linked_is(PyObject *o)
{
    return linked_type && PyObject_TypeCheck(o, linked_type);
}

static void say_gone(PyObject *o)
{
    const struct proxy *p = as_proxy(o);

    if (!p->forked)
        PyErr_SetString(PyExc_ReferenceError,
                        "this interpreter is ending, and has let go of the objects of others");
    else if (PyObject_TypeCheck(o, shared_type))
        PyErr_SetString(PyExc_ReferenceError,
                        "share() was called before this process was forked: share the object anew");
    else
        PyErr_Format(PyExc_ReferenceError,
                     "interpreter %llu, in which the object was, is of the process that this one "
                     "was forked from",
                     (unsigned long long)p->home);
}

struct pkg_object *pkg_linked_handle(PyObject *o)
{
    struct pkg_object *handle = as_proxy(o)->object;

    if (!handle)
        say_gone(o);
    return handle;
}

int pkg_linked_begin(PyTypeObject *linked, PyTypeObject *proxy, PyTypeObject *shared,
                     vectorcallfunc call)
{
    linked_type = linked;
    proxy_type = proxy;
    shared_type = shared;
    invoke = call;
    if (!classes)
        classes = PyDict_New();
    return classes ? 0 : -1;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Consumes the reference to the handle. */
static PyObject *new_linked(PyTypeObject *type, struct pkg_object *handle)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    PyObject *o = allocate(type, 0);
    struct proxy *p = as_proxy(o);

    if (!o) {
        pkg_object_release(handle);
        return NULL;
    }
    p->object = handle;
    p->invoke = invoke;
    p->home = handle->heap->id;
    p->next = proxies;
    if (p->next)
        p->next->prev = p;
    proxies = p;
    return o;
}

static void let_go(struct proxy *p)
{
    struct pkg_object *handle = p->object;

    if (!handle)
        return;
    p->object = NULL;
    if (p->next)
        p->next->prev = p->prev;
    if (p->prev)
        p->prev->next = p->next;
    else
        proxies = p->next;
    if (pkg_state.heap)
        exti_link_end(pkg_state.heap->links, p);
    if (p->counted)
        atomic_fetch_sub(&handle->proxies, 1);
    pkg_object_release(handle);
}

void pkg_linked_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    PyObject_GC_UnTrack(self);
    /* Nobody gets it any more, not even callbacks of weak references. */
    if (pkg_state.heap)
        exti_link_end(pkg_state.heap->links, self);
    if (as_proxy(self)->weak)
        PyObject_ClearWeakRefs(self);
    let_go(as_proxy(self));
    release(self);
    Py_DECREF(type);
}

/* What it is of is in another heap, and no collector of this one follows it. */
int pkg_linked_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    return 0;
}

void pkg_linked_end_all(int forked)
{
    while (proxies) {
        proxies->forked = forked;
        if (forked)
            pkg_object_keep(proxies->object);
        let_go(proxies);
    }
}

/* ---- proxies of handles ---------------------------------------------------------------------- */

static PyObject *key_of(const struct pkg_object *handle)
{
    return PyLong_FromUnsignedLongLong((unsigned long long)handle->heap->id << 32 | handle->kind);
}

/* By a proxy that is of no such class yet, and that nobody else gets. */
static PyObject *make_class(struct pkg_object *handle)
{
    PyObject *asker = new_linked(proxy_type, pkg_object_keep(handle)), *made = NULL;

    if (asker)
        made = PyObject_CallFunctionObjArgs(pkg_state.class_for, asker, NULL);
    Py_XDECREF(asker);
    return made;
}

#define CLASSES_MAX 4096

/* Borrowed.  Of an object of which nothing can be learnt any more the proxy can say so. */
static PyObject *new_class(struct pkg_object *handle, PyObject *key)
{
    PyObject *class = make_class(handle);

    if (!class) {
        if (!PyErr_ExceptionMatches(pkg_state.error) &&
            !PyErr_ExceptionMatches(PyExc_ReferenceError))
            return NULL;
        PyErr_Clear();
        return pkg_state.gone;
    }
    if (PyDict_Size(classes) >= CLASSES_MAX)
        PyDict_Clear(classes);
    if (PyDict_SetItem(classes, key, class) < 0)
        Py_CLEAR(class);
    Py_XDECREF(class);
    return class;
}

/* Borrowed. */
static PyObject *class_of(struct pkg_object *handle)
{
    PyObject *key = key_of(handle);
    PyObject *class = key ? PyDict_GetItemWithError(classes, key) : NULL;

    if (key && !class && !PyErr_Occurred())
        class = new_class(handle, key);
    Py_XDECREF(key);
    return class;
}

/* A new reference; NULL without an exception: there is none. */
static PyObject *find(const struct pkg_heap *heap, const struct pkg_object *handle)
{
    PyObject *known = exti_link_from_host(heap->links, (exti_host_word)handle);

    Py_XINCREF(known);
    return known;
}

/* From now on it is the one for its handle, and a collection knows who refers to it.  Consumes the
 * reference if there is no memory. */
static PyObject *enlist(struct pkg_heap *heap, PyObject *made)
{
    struct pkg_object *handle = as_proxy(made)->object;

    atomic_fetch_add(&handle->proxies, 1);
    as_proxy(made)->counted = 1;
    if (exti_link_host(heap->links, (exti_host_word)handle, made, EXTI_LINK_LOOSE) == 0)
        return made;
    Py_DECREF(made);
    return PyErr_NoMemory();
}

static PyObject *make_proxy(struct pkg_heap *heap, struct pkg_object *handle)
{
    PyObject *class = class_of(handle), *known, *made;

    if (!class)
        return NULL;
    known = find(heap, handle); /* by another thread, while the other interpreter was asked */
    if (known)
        return known;
    Py_INCREF(class);
    made = new_linked((PyTypeObject *)class, pkg_object_keep(handle));
    Py_DECREF(class);
    if (!made)
        return NULL;
    known = find(heap, handle); /* by whatever the collector has called meanwhile */
    if (known) {
        Py_DECREF(made);
        return known;
    }
    return enlist(heap, made);
}

PyObject *pkg_linked_object(struct pkg_object *handle)
{
    struct pkg_heap *heap = pkg_own_heap();
    PyObject *known;

    if (!heap)
        return NULL;
    if (handle->heap == heap)
        return pkg_own_object(handle);
    known = find(heap, handle);
    return known ? known : make_proxy(heap, handle);
}

/* ---- one's own objects ----------------------------------------------------------------------- */

/* Consumes the reference to the handle. */
static PyObject *make_shared(struct pkg_object *handle)
{
    PyObject *known = find(handle->heap, handle), *made;

    if (known) {
        pkg_object_release(handle);
        return known;
    }
    made = new_linked(shared_type, handle);
    if (!made)
        return NULL;
    known = find(handle->heap, handle); /* by whatever the collector has called meanwhile */
    if (!known)
        return enlist(handle->heap, made);
    Py_DECREF(made);
    return known;
}

PyObject *pkg_linked_share(PyObject *module, PyObject *args)
{
    struct pkg_object *handle;
    PyObject *object;
    int copies;

    (void)module;
    if (!PyArg_ParseTuple(args, "Op", &object, &copies))
        return NULL;
    if (pkg_linked_is(object)) {
        Py_INCREF(object);
        return object;
    }
    handle = pkg_own_handle(object);
    if (!handle)
        return NULL;
    if (!copies)
        handle->copies = false;
    return make_shared(handle);
}
