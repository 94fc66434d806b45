#include "bindings/python/ext/proxy.h"

#include <stddef.h>
#include <string.h>
#include <structmember.h>

#include "bindings/python/ext/calls.h"
#include "bindings/python/ext/linked.h"
#include "bindings/python/ext/reading.h"
#include "bindings/python/ext/values.h"

static PyTypeObject *proxy_type;

/* ---- calls ----------------------------------------------------------------------------------- */

static int begin(struct pkg_call *call, PyObject *self, enum pkg_op op)
{
    call->op = op;
    call->target = NULL;
    call->hash = 0;
    call->policy = PKG_LINKED;
    call->unread = 0;
    pkg_message_init(&call->given);
    call->object = pkg_object_keep(pkg_linked_handle(self));
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

static int are_exact(PyObject *names)
{
    Py_ssize_t i = 0, n = PyTuple_Size(names);

    while (i < n && PyUnicode_CheckExact(PyTuple_GetItem(names, i)))
        i++;
    return i == n;
}

/* Those of subclasses of str would stay here.  A new reference. */
static PyObject *exact(PyObject *names)
{
    PyObject *tuple, *name;

    if (are_exact(names)) {
        Py_INCREF(names);
        return names;
    }
    tuple = PyTuple_New(PyTuple_Size(names));
    for (Py_ssize_t i = 0; tuple && i < PyTuple_Size(names); i++) {
        name = PyUnicode_FromObject(PyTuple_GetItem(names, i));
        if (!name || PyTuple_SetItem(tuple, i, name) < 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

/* `names` are those of the last arguments, exactly of str, or NULL. */
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

static PyObject *make_named(PyObject *self, enum pkg_op op, PyObject *names, PyObject *const *args,
                            Py_ssize_t n)
{
    PyObject *exactly = exact(names), *result = NULL;

    if (exactly)
        result = make_with(self, op, exactly, args, n);
    Py_XDECREF(exactly);
    return result;
}

static PyObject *invoke(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
    const Py_ssize_t n = PyVectorcall_NARGS(count);
    struct pkg_call call;

    if (names && PyTuple_Size(names))
        return make_named(self, PKG_OP_NAMED, names, args, n);
    if (begin(&call, self, PKG_OP_INVOKE) < 0)
        return NULL;
    return pkg_values_add_all(&call.given, args, n, PKG_LINKED | PKG_GIVEN) == 1 ? make(&call)
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
    if (need_proxy(args[0]) < 0)
        return NULL;
    return names ? make_named(args[0], PKG_OP_SPECIAL, names, args + 1, n - 1)
                 : make_with(args[0], PKG_OP_SPECIAL, NULL, args + 1, n - 1);
}

PyObject *pkg_proxy_copy(PyObject *module, PyObject *proxy)
{
    (void)module;
    if (need_proxy(proxy) < 0 || !pkg_linked_handle(proxy))
        return NULL;
    if (!pkg_linked_handle(proxy)->copies) {
        PyErr_SetString(PyExc_TypeError, "the object was shared with copies=False");
        return NULL;
    }
    return make_bare(proxy, PKG_OP_TAKE);
}

PyObject *pkg_proxy_home(PyObject *module, PyObject *proxy)
{
    (void)module;
    if (pkg_linked_is(proxy))
        return PyLong_FromUnsignedLongLong(((struct proxy *)(void *)proxy)->home);
    PyErr_SetString(PyExc_TypeError, "it is no proxy");
    return NULL;
}

/* ---- attributes ------------------------------------------------------------------------------ */

/* Those of the proxy and not of its object: what CPython needs to know of it, how it is pickled,
 * what has to be of a type of this interpreter, and the protocols of numpy, which need an array of
 * it. */
static int is_own_name(const char *utf8, size_t n)
{
    static const char *const names[] = {
        "__class__",   "__reduce__", "__reduce_ex__", "__del__",         "__deepcopy__",
        "__weakref__", "__copy__",   "__signature__", "__annotations__", "__annotate__",
        NULL};
    static const char array[] = "__array_";

    if (n < 2 || utf8[0] != '_' || utf8[1] != '_')
        return 0;
    for (size_t i = 0; names[i]; i++)
        if (strlen(names[i]) == n && memcmp(names[i], utf8, n) == 0)
            return 1;
    return n >= strlen(array) && memcmp(array, utf8, strlen(array)) == 0;
}

/* The bytes stay where they are: whoever asks for the attribute has the name meanwhile. */
static PyObject *get_by(PyObject *self, PyObject *name, const char *bytes, Py_ssize_t n)
{
    struct pkg_call call;

    if (begin(&call, self, PKG_OP_GET) < 0)
        return NULL;
    call.hash = (size_t)PyObject_Hash(name);
    call.name = bytes;
    call.name_length = (size_t)n;
    return make(&call);
}

static PyObject *get_exactly(PyObject *self, PyObject *name)
{
    Py_ssize_t n;
    const char *utf8 = PyUnicode_AsUTF8AndSize(name, &n);
    PyObject *bytes, *found = NULL;
    char *data;

    if (utf8 && is_own_name(utf8, (size_t)n))
        return PyObject_GenericGetAttr(self, name);
    if (utf8)
        return get_by(self, name, utf8, n);
    PyErr_Clear(); /* it has surrogates */
    bytes = PyUnicode_AsEncodedString(name, "utf-8", "surrogatepass");
    if (bytes && PyBytes_AsStringAndSize(bytes, &data, &n) == 0)
        found = get_by(self, name, data, n);
    Py_XDECREF(bytes);
    return found;
}

static PyObject *get_attribute(PyObject *self, PyObject *name)
{
    PyObject *exactly, *found;

    if (!PyUnicode_Check(name))
        return PyObject_GenericGetAttr(self, name);
    if (PyUnicode_CheckExact(name))
        return get_exactly(self, name);
    exactly = PyUnicode_FromObject(name);
    found = exactly ? get_exactly(self, exactly) : NULL;
    Py_XDECREF(exactly);
    return found;
}

static int set_attribute(PyObject *self, PyObject *name, PyObject *value)
{
    PyObject *function = PyUnicode_FromString(value ? "__setattr__" : "__delattr__"), *done = NULL;
    PyObject *exactly = PyUnicode_FromObject(name);
    PyObject *args[3] = {function, exactly, value};

    if (function && exactly)
        done = make_with(self, PKG_OP_SPECIAL, NULL, args, value ? 3 : 2);
    Py_XDECREF(function);
    Py_XDECREF(exactly);
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

static PyObject *refuse_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    (void)args;
    (void)named;
    PyErr_Format(PyExc_TypeError, "%R is made by Interpreter.proxy() and share()", type);
    return NULL;
}

/* ---- types ----------------------------------------------------------------------------------- */

/* How one is called without a tuple (PEP 590). */
static PyMemberDef invoked[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(struct proxy, invoke), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

/* A new reference. */
static PyObject *new_type(const char *name, PyObject *bases, unsigned flags, PyType_Slot *slots)
{
    PyType_Spec spec = {.name = name,
                        .basicsize = sizeof(struct proxy),
                        .flags =
                            flags | Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                        .slots = slots};

    return PyType_FromSpecWithBases(&spec, bases);
}

/* A new reference. */
static PyTypeObject *add_type(PyObject *module, const char *name, PyTypeObject *base,
                              unsigned flags, PyType_Slot *slots)
{
    PyObject *bases = base ? PyTuple_Pack(1, base) : NULL, *type = NULL;

    if (bases || !base)
        type = new_type(name, bases, flags, slots);
    Py_XDECREF(bases);
    if (type && PyObject_SetAttrString(module, strrchr(name, '.') + 1, type) < 0)
        Py_CLEAR(type);
    return (PyTypeObject *)type;
}

PyObject *pkg_proxy_class(PyObject *module, PyObject *bases)
{
    PyType_Slot slots[] = {
        {Py_tp_members, invoked}, {Py_tp_traverse, (void *)pkg_linked_traverse}, {0, NULL}};

    (void)module;
    return new_type("extisolate.Proxy", bases, Py_TPFLAGS_HAVE_VECTORCALL, slots);
}

int pkg_proxy_add(PyObject *module)
{
    static PyMemberDef members[] = {
        {"__weaklistoffset__", T_PYSSIZET, offsetof(struct proxy, weak), READONLY, NULL},
        {NULL, 0, 0, 0, NULL},
    };
    PyType_Slot linked[] = {{Py_tp_members, members},
                            {Py_tp_new, (void *)refuse_new},
                            {Py_tp_dealloc, (void *)pkg_linked_dealloc},
                            {Py_tp_traverse, (void *)pkg_linked_traverse},
                            {0, NULL}};
    static const char doc[] =
        "What stands for an object of another interpreter, which stays there.\n\n"
        "It has the methods of the object's type, and is an instance of the abstract classes of "
        "collections.abc and numbers that the object is one of.  The same object has the same "
        "proxy as long as there is one.";
    PyType_Slot proxy[] = {{Py_tp_doc, (void *)doc},
                           {Py_tp_getattro, (void *)get_attribute},
                           {Py_tp_setattro, (void *)set_attribute},
                           {Py_tp_traverse, (void *)pkg_linked_traverse},
                           {0, NULL}};
    PyType_Slot callable[] = {{Py_tp_members, invoked},
                              {Py_tp_call, (void *)PyVectorcall_Call},
                              {Py_tp_traverse, (void *)pkg_linked_traverse},
                              {0, NULL}};
    PyType_Slot buffer[] = {{Py_bf_getbuffer, (void *)get_memory},
                            {Py_tp_traverse, (void *)pkg_linked_traverse},
                            {0, NULL}};
    PyTypeObject *linked_type, *with_call = NULL, *with_memory = NULL, *shared_type = NULL;
    PyType_Slot shared[] = {{Py_tp_traverse, (void *)pkg_linked_traverse}, {0, NULL}};

    linked_type = add_type(module, "extisolate._extisolate.Linked", NULL, 0, linked);
    if (linked_type)
        proxy_type = add_type(module, "extisolate._extisolate.Proxy", linked_type, 0, proxy);
    if (proxy_type)
        with_call = add_type(module, "extisolate._extisolate.CallableProxy", proxy_type,
                             Py_TPFLAGS_HAVE_VECTORCALL, callable);
    if (with_call)
        with_memory = add_type(module, "extisolate._extisolate.BufferProxy", proxy_type, 0, buffer);
    Py_XDECREF((PyObject *)with_call);
    Py_XDECREF((PyObject *)with_memory);
    if (with_memory)
        shared_type = add_type(module, "extisolate._extisolate.Shared", linked_type, 0, shared);
    return shared_type ? pkg_linked_begin(linked_type, proxy_type, shared_type, invoke) : -1;
}
