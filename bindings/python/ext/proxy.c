#include "bindings/python/ext/proxy.h"

#include <stddef.h>
#include <string.h>
#include <structmember.h>

#include "bindings/python/ext/calls.h"
#include "bindings/python/ext/own.h"
#include "bindings/python/ext/reading.h"
#include "bindings/python/ext/values.h"

/* An instance of a class in Python that is made for the type of the object, or for one's own object
 * of the class that stands for it. */
struct proxy {
    PyObject_HEAD struct pkg_object *object; /* a reference; NULL: it was let go of */
    PyObject *weak;
    int counted; /* among the handle's proxies */
    struct proxy *next, *prev;
};

static PyTypeObject *linked_type, *proxy_type, *shared_type;
static PyObject *classes;     /* of proxies, by the kinds of their objects */
static struct proxy *proxies; /* all; with the GIL */

static struct proxy *as_proxy(PyObject *o)
{
    return (struct proxy *)(void *)o;
}

int pkg_proxy_is(PyObject *o)
{
    return linked_type && PyObject_TypeCheck(o, linked_type);
}

struct pkg_object *pkg_proxy_handle(PyObject *o)
{
    struct pkg_object *handle = as_proxy(o)->object;

    if (!handle)
        PyErr_SetString(PyExc_ReferenceError,
                        "the object is of an interpreter that this one has outlived, or of the "
                        "process that this one was forked from");
    return handle;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static int begin(struct pkg_call *call, PyObject *self, enum pkg_op op)
{
    call->op = op;
    call->target = NULL;
    call->hash = 0;
    call->policy = PKG_LINKED;
    call->unread = 0;
    pkg_message_init(&call->given);
    call->object = pkg_object_keep(pkg_proxy_handle(self));
    return call->object ? 0 : -1;
}

/* The interpreter of the object is not there any more. */
static void say_closed(const struct pkg_object *o)
{
    if (!PyErr_ExceptionMatches(pkg_state.not_found))
        return;
    PyErr_Clear();
    PyErr_Format(pkg_state.not_found, "interpreter %llu, in which the object was, is closed",
                 (unsigned long long)o->heap->id);
}

static void raise_remote(PyObject *answer)
{
    PyObject *exception = PyObject_CallObject(pkg_state.raised, answer);

    if (exception)
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    Py_XDECREF(exception);
}

/* What was done is done, whatever becomes of this. */
static void collect_if_many(void)
{
    const struct pkg_heaps *heaps = pkg_state.core->heaps;
    PyObject *done;

    if (atomic_load_explicit(&heaps->count, memory_order_relaxed) <=
        atomic_load_explicit(&heaps->most, memory_order_relaxed))
        return;
    done = PyObject_CallObject(pkg_state.collect, NULL);
    Py_XDECREF(done);
    PyErr_Clear();
}

/* Makes the call, to which all has been given. */
static PyObject *make(struct pkg_call *call)
{
    struct pkg_object *o = call->object;
    PyObject *answer = NULL;

    if (pkg_calls_make(o->heap->id, call) < 0) {
        say_closed(o);
    } else {
        answer = pkg_read(&call->answer);
        pkg_message_clear(&call->answer);
    }
    pkg_object_release(o);
    if (answer && !call->direct) {
        raise_remote(answer);
        Py_CLEAR(answer);
    }
    if (answer)
        collect_if_many();
    return answer;
}

static PyObject *give_up(struct pkg_call *call)
{
    pkg_message_clear(&call->given);
    pkg_object_release(call->object);
    return NULL;
}

/* `names` are those of the last arguments, or NULL. */
static PyObject *make_with(PyObject *self, enum pkg_op op, PyObject *names, PyObject *const *args,
                           Py_ssize_t n)
{
    PyObject *few[8], **all = few;
    struct pkg_call call;
    int rc;

    if (begin(&call, self, op) < 0)
        return NULL;
    if (names)
        n += PyTuple_Size(names);
    if (n + 1 > (Py_ssize_t)(sizeof few / sizeof *few))
        all = PyMem_Malloc((size_t)(n + 1) * sizeof *all);
    if (!all) {
        PyErr_NoMemory();
        return give_up(&call);
    }
    all[0] = names ? names : Py_None;
    for (Py_ssize_t i = 0; i < n; i++)
        all[i + 1] = args[i];
    rc = pkg_values_add_all(&call.given, all, n + 1, PKG_LINKED | PKG_GIVEN);
    if (all != few)
        PyMem_Free(all);
    return rc == 1 ? make(&call) : give_up(&call);
}

static PyObject *make_bare(PyObject *self, enum pkg_op op)
{
    struct pkg_call call;

    return begin(&call, self, op) < 0 ? NULL : make(&call);
}

/* The names and their values, in one order. */
static PyObject *invoke_named(PyObject *self, PyObject *args, PyObject *named)
{
    PyObject *keys = PyDict_Keys(named), *names = keys ? PyList_AsTuple(keys) : NULL;
    const Py_ssize_t n = PyTuple_Size(args), count = names ? PyTuple_Size(names) : 0;
    PyObject **all = PyMem_Malloc((size_t)(n + count) * sizeof *all), *result = NULL;

    for (Py_ssize_t i = 0; all && i < n; i++)
        all[i] = PyTuple_GetItem(args, i);
    for (Py_ssize_t i = 0; all && i < count; i++)
        all[n + i] = PyDict_GetItemWithError(named, PyTuple_GetItem(names, i));
    if (!all)
        PyErr_NoMemory();
    else if (names)
        result = make_with(self, PKG_OP_NAMED, names, all, n);
    PyMem_Free(all);
    Py_XDECREF(keys);
    Py_XDECREF(names);
    return result;
}

static PyObject *invoke(PyObject *self, PyObject *args, PyObject *named)
{
    struct pkg_call call;

    if (named && PyDict_Size(named))
        return invoke_named(self, args, named);
    if (begin(&call, self, PKG_OP_INVOKE) < 0)
        return NULL;
    return pkg_values_add(&call.given, args, PKG_LINKED | PKG_GIVEN) == 1 ? make(&call)
                                                                          : give_up(&call);
}

static int need_proxy(PyObject *o)
{
    if (PyObject_TypeCheck(o, proxy_type))
        return 0;
    PyErr_SetString(PyExc_TypeError, "it is no proxy");
    return -1;
}

PyObject *pkg_proxy_special(PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    (void)module;
    if (n < 2) {
        PyErr_SetString(PyExc_TypeError, "special() needs a proxy and a name");
        return NULL;
    }
    return need_proxy(args[0]) < 0 ? NULL
                                   : make_with(args[0], PKG_OP_SPECIAL, names, args + 1, n - 1);
}

PyObject *pkg_proxy_copy(PyObject *module, PyObject *proxy)
{
    (void)module;
    if (need_proxy(proxy) < 0 || !pkg_proxy_handle(proxy))
        return NULL;
    if (!as_proxy(proxy)->object->copies) {
        PyErr_SetString(PyExc_TypeError, "the object was shared with copies=False");
        return NULL;
    }
    return make_bare(proxy, PKG_OP_TAKE);
}

PyObject *pkg_proxy_home(PyObject *module, PyObject *proxy)
{
    const struct pkg_object *handle;

    (void)module;
    if (!pkg_proxy_is(proxy)) {
        PyErr_SetString(PyExc_TypeError, "it is no proxy");
        return NULL;
    }
    handle = pkg_proxy_handle(proxy);
    return handle ? PyLong_FromUnsignedLongLong(handle->heap->id) : NULL;
}

/* ---- attributes ------------------------------------------------------------------------------ */

/* Those of the proxy and not of its object: what CPython needs to know of it, how it is pickled,
 * and the protocols of numpy, which need an array of this interpreter. */
static int is_own_name(PyObject *name)
{
    static const char *const names[] = {"__class__",    "__reduce__",  "__reduce_ex__", "__del__",
                                        "__deepcopy__", "__weakref__", "__copy__",      NULL};

    PyObject *text;
    int is = 0;

    if (PyUnicode_GetLength(name) < 3 || PyUnicode_ReadChar(name, 0) != '_' ||
        PyUnicode_ReadChar(name, 1) != '_')
        return 0;
    for (size_t i = 0; names[i] && !is; i++)
        is = PyUnicode_CompareWithASCIIString(name, names[i]) == 0;
    if (is)
        return 1;
    text = PyUnicode_FromString("__array_");
    is = text && PyUnicode_Tailmatch(name, text, 0, PY_SSIZE_T_MAX, -1) == 1;
    Py_XDECREF(text);
    return is;
}

static PyObject *get_attribute(PyObject *self, PyObject *name)
{
    struct pkg_call call;

    if (!PyUnicode_Check(name) || is_own_name(name))
        return PyObject_GenericGetAttr(self, name);
    if (begin(&call, self, PKG_OP_GET) < 0)
        return NULL;
    return pkg_values_add(&call.given, name, PKG_LINKED) == 1 ? make(&call) : give_up(&call);
}

static int set_attribute(PyObject *self, PyObject *name, PyObject *value)
{
    PyObject *function = PyUnicode_FromString(value ? "__setattr__" : "__delattr__"), *done;
    PyObject *args[3] = {function, name, value};

    if (!function)
        return -1;
    done = make_with(self, PKG_OP_SPECIAL, NULL, args, value ? 3 : 2);
    Py_DECREF(function);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int get_memory(PyObject *self, Py_buffer *view, int flags)
{
    PyObject *answer = make_bare(self, PKG_OP_MEMORY);
    int rc = -1;

    view->obj = NULL;
    if (answer && PyTuple_Check(answer) && PyTuple_Size(answer) == 1)
        rc = PyObject_GetBuffer(PyTuple_GetItem(answer, 0), view, flags);
    Py_XDECREF(answer);
    return rc;
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

static void end_linked(PyObject *self)
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
static int traverse_linked(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    return 0;
}

static PyObject *refuse_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    (void)args;
    (void)named;
    PyErr_Format(PyExc_TypeError, "%R is made by Interpreter.proxy() and share()", type);
    return NULL;
}

void pkg_proxy_end_all(int forked)
{
    while (proxies) {
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

/* Asks the interpreter that has the type. */
static PyObject *make_class(struct pkg_object *handle)
{
    PyObject *asker = new_linked(proxy_type, pkg_object_keep(handle));
    PyObject *name = PyUnicode_FromString("describe"), *description = NULL, *made = NULL;

    if (asker && name)
        description = make_with(asker, PKG_OP_SPECIAL, NULL, &name, 1);
    if (description)
        made = PyObject_CallObject(pkg_state.class_for, description);
    Py_XDECREF(description);
    Py_XDECREF(name);
    Py_XDECREF(asker);
    return made;
}

#define CLASSES_MAX 4096

/* Borrowed. */
static PyObject *class_of(struct pkg_object *handle)
{
    PyObject *key = key_of(handle);
    PyObject *class = key ? PyDict_GetItemWithError(classes, key) : NULL;

    if (key && !class && !PyErr_Occurred()) {
        class = make_class(handle);
        if (class && PyDict_Size(classes) >= CLASSES_MAX)
            PyDict_Clear(classes);
        if (class && PyDict_SetItem(classes, key, class) < 0)
            Py_CLEAR(class);
        Py_XDECREF(class);
    }
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
    atomic_fetch_add(&handle->proxies, 1);
    as_proxy(made)->counted = 1;
    if (exti_link_host(heap->links, (exti_host_word)handle, made, EXTI_LINK_LOOSE) < 0) {
        Py_DECREF(made);
        return PyErr_NoMemory();
    }
    return made;
}

PyObject *pkg_proxy_of(struct pkg_object *handle)
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

PyObject *pkg_proxy_share(PyObject *module, PyObject *args)
{
    struct pkg_object *handle;
    PyObject *object;
    int copies;

    (void)module;
    if (!PyArg_ParseTuple(args, "Op", &object, &copies))
        return NULL;
    if (pkg_proxy_is(object)) {
        Py_INCREF(object);
        return object;
    }
    handle = pkg_own_handle(object);
    if (!handle)
        return NULL;
    if (!copies)
        handle->copies = false;
    return new_linked(shared_type, handle);
}

/* ---- types ----------------------------------------------------------------------------------- */

/* A new reference. */
static PyTypeObject *add_type(PyObject *module, const char *name, PyTypeObject *base,
                              PyType_Slot *slots)
{
    PyType_Spec spec = {.name = name,
                        .basicsize = sizeof(struct proxy),
                        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                        .slots = slots};
    PyObject *bases = base ? PyTuple_Pack(1, base) : NULL, *type = NULL;

    if (bases || !base)
        type = PyType_FromSpecWithBases(&spec, bases);
    Py_XDECREF(bases);
    if (type && PyObject_SetAttrString(module, strrchr(name, '.') + 1, type) < 0)
        Py_CLEAR(type);
    return (PyTypeObject *)type;
}

static int add_types(PyObject *module)
{
    static PyMemberDef members[] = {
        {"__weaklistoffset__", T_PYSSIZET, offsetof(struct proxy, weak), READONLY, NULL},
        {NULL, 0, 0, 0, NULL},
    };
    PyType_Slot linked[] = {{Py_tp_members, members},
                            {Py_tp_new, (void *)refuse_new},
                            {Py_tp_dealloc, (void *)end_linked},
                            {Py_tp_traverse, (void *)traverse_linked},
                            {0, NULL}};
    static const char doc[] =
        "What stands for an object of another interpreter, which stays there.\n\n"
        "It has the methods of the object's type, and is an instance of the abstract classes of "
        "collections.abc and numbers that the object is one of.  The same object has the same "
        "proxy as long as there is one.";
    PyType_Slot proxy[] = {{Py_tp_doc, (void *)doc},
                           {Py_tp_getattro, (void *)get_attribute},
                           {Py_tp_setattro, (void *)set_attribute},
                           {Py_tp_traverse, (void *)traverse_linked},
                           {0, NULL}};
    PyType_Slot callable[] = {
        {Py_tp_call, (void *)invoke}, {Py_tp_traverse, (void *)traverse_linked}, {0, NULL}};
    PyType_Slot buffer[] = {{Py_bf_getbuffer, (void *)get_memory},
                            {Py_tp_traverse, (void *)traverse_linked},
                            {0, NULL}};
    PyTypeObject *with_call = NULL, *with_memory = NULL;
    PyType_Slot shared[] = {{Py_tp_traverse, (void *)traverse_linked}, {0, NULL}};

    linked_type = add_type(module, "extisolate._extisolate.Linked", NULL, linked);
    if (linked_type)
        proxy_type = add_type(module, "extisolate._extisolate.Proxy", linked_type, proxy);
    if (proxy_type)
        with_call = add_type(module, "extisolate._extisolate.CallableProxy", proxy_type, callable);
    if (with_call)
        with_memory = add_type(module, "extisolate._extisolate.BufferProxy", proxy_type, buffer);
    Py_XDECREF((PyObject *)with_call);
    Py_XDECREF((PyObject *)with_memory);
    if (with_memory)
        shared_type = add_type(module, "extisolate._extisolate.Shared", linked_type, shared);
    return shared_type ? 0 : -1;
}

int pkg_proxy_add(PyObject *module)
{
    if (!classes && !(classes = PyDict_New()))
        return -1;
    return add_types(module);
}
