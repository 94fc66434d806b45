#include "bindings/python/ext/caller.h"

#include <stddef.h>
#include <string.h>
#include <structmember.h>

#include "bindings/python/ext/calls.h"
#include "bindings/python/ext/reading.h"
#include "bindings/python/ext/target.h"
#include "bindings/python/ext/values.h"

/* An instance of a class in Python, whose methods do what is not done here. */
struct caller {
    PyObject_HEAD unsigned long long id;
    int policy;
    int exited; /* a call has found that the interpreter's code has ended it */
};

static PyTypeObject *caller_type;

/* One by one: most of a message's bytes need not be set. */
static void begin_call(struct pkg_call *call, const struct caller *self, const char *target,
                       size_t hash)
{
    call->op = PKG_OP_NONE;
    call->target = target;
    call->hash = hash;
    call->policy = self->policy;
    call->unread = 0;
    pkg_message_init(&call->given);
}

static PyObject *make_call(struct caller *self, struct pkg_call *call)
{
    PyObject *answer, *result;

    if (pkg_calls_make(self->id, call) < 0) {
        self->exited = call->exit_status >= 0;
        return NULL;
    }
    answer = pkg_read(&call->answer);
    pkg_message_clear(&call->answer);
    if (!answer || call->direct)
        return answer;
    result = PyObject_CallMethod((PyObject *)self, "_answered", "(O)", answer);
    Py_DECREF(answer);
    return result;
}

/* By a message of the package's own making. */
static PyObject *call_dispatcher(PyObject *self, PyObject *message)
{
    struct caller *caller = (void *)self;
    struct pkg_call call;

    begin_call(&call, caller, NULL, 0);
    if (pkg_values_add_own(&call.given, message, caller->policy) < 0)
        return NULL;
    return make_call(caller, &call);
}

static PyObject *tuple_of(PyObject *const *items, Py_ssize_t n)
{
    PyObject *tuple = PyTuple_New(n);

    for (Py_ssize_t i = 0; tuple && i < n; i++) {
        Py_INCREF(items[i]);
        PyTuple_SetItem(tuple, i, items[i]);
    }
    return tuple;
}

static PyObject *dict_of(PyObject *names, PyObject *const *values)
{
    PyObject *dict = PyDict_New();

    for (Py_ssize_t i = 0; dict && names && i < PyTuple_Size(names); i++)
        if (PyDict_SetItem(dict, PyTuple_GetItem(names, i), values[i]) < 0)
            Py_CLEAR(dict);
    return dict;
}

/* What pickle has to make a message of. */
static PyObject *call_pickled(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyObject *given = tuple_of(args + 1, n - 1), *named = dict_of(names, args + n), *result = NULL;

    if (given && named)
        result = PyObject_CallMethod(self, "_call_pickled", "OOO", args[0], given, named);
    Py_XDECREF(given);
    Py_XDECREF(named);
    return result;
}

/* Returns NULL without an exception if pickle has to make the message. */
static PyObject *call_plain(struct caller *self, PyObject *target, PyObject *const *args,
                            Py_ssize_t n)
{
    struct pkg_call call;
    int rc;

    begin_call(&call, self, PyBytes_AsString(target), (size_t)PyObject_Hash(target));
    rc = pkg_values_add_all(&call.given, args, n, self->policy);
    if (rc == 1)
        return make_call(self, &call);
    pkg_message_clear(&call.given);
    return NULL;
}

static PyObject *call(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyObject *target = NULL, *result = NULL;

    if (n < 1) {
        PyErr_SetString(PyExc_TypeError, "call() needs a callable");
        return NULL;
    }
    if (!names)
        target = pkg_target_of(args[0], ((struct caller *)self)->id);
    if (target)
        result = call_plain((void *)self, target, args + 1, n - 1);
    Py_XDECREF(target);
    return result || PyErr_Occurred() ? result : call_pickled(self, args, n, names);
}

/* Returns a new reference. */
static PyTypeObject *add_type(PyObject *module, const char *name, int size, PyType_Slot *slots)
{
    PyType_Spec spec = {.name = name,
                        .basicsize = size,
                        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                        .slots = slots};
    PyObject *type = PyType_FromSpec(&spec);

    if (type && PyObject_SetAttrString(module, strrchr(name, '.') + 1, type) < 0)
        Py_CLEAR(type);
    return (PyTypeObject *)type;
}

static int add_caller(PyObject *module)
{
    static PyMemberDef members[] = {
        {"_id", T_ULONGLONG, offsetof(struct caller, id), 0, NULL},
        {"_policy", T_INT, offsetof(struct caller, policy), 0, NULL},
        {NULL, 0, 0, 0, NULL},
    };
    static PyMethodDef methods[] = {
        {"call", (PyCFunction)(void (*)(void))call, METH_FASTCALL | METH_KEYWORDS,
         "call($self, callable, /, *args, **kwargs)\n--\n\n"
         "Call it there, on this thread, and give what it returns.\n\n"
         "ExecutionFailed: it raised.  NotShareableError: an argument or the result cannot "
         "travel."},
        {"_call_dispatcher", call_dispatcher, METH_O, NULL},
        {NULL, NULL, 0, NULL},
    };
    PyType_Slot slots[] = {{Py_tp_members, members}, {Py_tp_methods, methods}, {0, NULL}};

    caller_type = add_type(module, "extisolate._extisolate.Caller", sizeof(struct caller), slots);
    return caller_type ? 0 : -1;
}

/* ---- each thread's own ---- */

/* It is in the thread's dict, which ends with the thread. */
static PyObject *keep(PyObject *self, PyObject *caller)
{
    PyObject *dict = PyThreadState_GetDict(); /* borrowed */

    if (!PyObject_TypeCheck(caller, caller_type)) {
        PyErr_SetString(PyExc_TypeError, "it is no Caller");
        return NULL;
    }
    if (!dict)
        return PyErr_NoMemory();
    if (PyDict_SetItem(dict, self, caller) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* Has it replace the interpreter.  The exception that is set stays. */
static void tell_exited(PyObject *self)
{
    PyObject *type, *value, *trace, *done;

    PyErr_Fetch(&type, &value, &trace);
    done = PyObject_CallMethod(self, "_exited", NULL);
    if (!done)
        PyErr_WriteUnraisable(self);
    Py_XDECREF(done);
    PyErr_Restore(type, value, trace);
}

static PyObject *call_own(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyObject *dict = PyThreadState_GetDict(), *caller, *result;

    caller = dict ? PyDict_GetItemWithError(dict, self) : NULL;
    if (!caller) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_RuntimeError, "this thread has no interpreter");
        return NULL;
    }
    Py_INCREF(caller);
    result = call(caller, args, n, names);
    if (!result && ((struct caller *)caller)->exited)
        tell_exited(self);
    Py_DECREF(caller);
    return result;
}

static int add_own_caller(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"keep", keep, METH_O, NULL},
        {"call", (PyCFunction)(void (*)(void))call_own, METH_FASTCALL | METH_KEYWORDS, NULL},
        {NULL, NULL, 0, NULL},
    };
    PyType_Slot slots[] = {{Py_tp_methods, methods}, {0, NULL}};

    PyTypeObject *type =
        add_type(module, "extisolate._extisolate.OwnCaller", sizeof(PyObject), slots);

    Py_XDECREF((PyObject *)type);
    return type ? 0 : -1;
}

int pkg_caller_add(PyObject *module)
{
    return add_caller(module) < 0 ? -1 : add_own_caller(module);
}
