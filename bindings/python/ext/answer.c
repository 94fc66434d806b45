#include "bindings/python/ext/python.h"

#include "bindings/python/ext/answer.h"

#include <stdio.h>

#include "bindings/python/ext/memory.h"
#include "bindings/python/ext/names.h"
#include "bindings/python/ext/own.h"
#include "bindings/python/ext/reading.h"
#include "bindings/python/ext/state.h"
#include "bindings/python/ext/target.h"
#include "bindings/python/ext/values.h"

/* Once for each state that threads have here. */
static int adopt_thread(void)
{
    static _Thread_local uint64_t adopted; /* a state's number */
    uint64_t id = PyThreadState_GetID(PyThreadState_Get());
    PyObject *done;

    if (id == adopted)
        return 0;
    done = PyObject_CallObject(pkg_state.adopt_thread, NULL);
    Py_XDECREF(done);
    if (done)
        adopted = id;
    return done ? 0 : -1;
}

/* Whether it may look at its caller's variables, as eval() and type() do.  Whoever calls from here
 * has none. */
static int may_look_at_caller(PyObject *function)
{
    PyObject *self;

    if (function == (PyObject *)&PyType_Type)
        return 1;
    self = PyCFunction_CheckExact(function) ? PyCFunction_GetSelf(function) : NULL;
    return self && PyModule_Check(self);
}

/* `named`: a dict, or NULL. */
static PyObject *call_fully(PyObject *function, PyObject *args, PyObject *named)
{
    PyObject *none, *result = NULL;

    if (!may_look_at_caller(function))
        return PyObject_Call(function, args, named);
    none = named ? NULL : PyDict_New();
    if (named || none)
        result = PyObject_CallFunctionObjArgs(pkg_state.in_main, function, args,
                                              named ? named : none, NULL);
    Py_XDECREF(none);
    return result;
}

static PyObject *call_with_tuple(PyObject *function, const struct pkg_message *given)
{
    PyObject *args = given->length ? pkg_read(given) : PyTuple_New(0), *result = NULL;

    if (args)
        result = call_fully(function, args, NULL);
    Py_XDECREF(args);
    return result;
}

/* Few arguments need no tuple. */
static PyObject *call_with(PyObject *function, const struct pkg_message *given)
{
    PyObject *few[1 + PKG_FEW], *result = NULL; /* the first is the callee's */
    size_t n;
    int rc = pkg_read_few(given, few + 1, &n);

    if (rc == 0)
        return call_with_tuple(function, given);
    if (rc > 0)
        result = PyObject_Vectorcall(function, few + 1, n | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    while (n)
        Py_DECREF(few[n--]);
    return result;
}

static PyObject *call_target(const struct pkg_call *call)
{
    PyObject *function = pkg_target_find(call->target, call->hash), *result = NULL;

    if (function)
        result = call_with(function, &call->given);
    Py_XDECREF(function);
    return result;
}

static PyObject *call_dispatcher(const struct pkg_call *call)
{
    PyObject *args = pkg_read(&call->given), *result = NULL;

    if (args)
        result = PyObject_CallObject(pkg_state.dispatch, args);
    Py_XDECREF(args);
    return result;
}

/* ---- what is done with an object ---- */

/* The arguments from number `from` on, after `first` (or NULL), but for the last `left`. */
static PyObject *some_of(PyObject *given, Py_ssize_t from, Py_ssize_t left, PyObject *first)
{
    const Py_ssize_t n = PyTuple_Size(given) - left - from, at = first != NULL;
    PyObject *tuple = PyTuple_New(n + at), *item;

    for (Py_ssize_t i = 0; tuple && i < n; i++) {
        item = PyTuple_GetItem(given, from + i);
        Py_INCREF(item);
        PyTuple_SetItem(tuple, at + i, item);
    }
    if (tuple && first) {
        Py_INCREF(first);
        PyTuple_SetItem(tuple, 0, first);
    }
    return tuple;
}

/* `given` begins with the names of the last arguments. */
static PyObject *named_of(PyObject *given, PyObject *names)
{
    const Py_ssize_t n = PyTuple_Size(names), from = PyTuple_Size(given) - n;
    PyObject *named = PyDict_New();

    for (Py_ssize_t i = 0; named && i < n; i++)
        if (PyDict_SetItem(named, PyTuple_GetItem(names, i), PyTuple_GetItem(given, from + i)) < 0)
            Py_CLEAR(named);
    return named;
}

static PyObject *invoke_read(PyObject *function, PyObject *first, PyObject *given)
{
    PyObject *names = PyTuple_GetItem(given, 0), *args, *named = NULL, *result = NULL;
    const int has_names = names != Py_None;

    args = some_of(given, 1, has_names ? PyTuple_Size(names) : 0, first);
    if (has_names)
        named = named_of(given, names);
    if (args && (named || !has_names))
        result = call_fully(function, args, named);
    Py_XDECREF(args);
    Py_XDECREF(named);
    return result;
}

static PyObject *invoke(PyObject *function, PyObject *first, const struct pkg_message *message)
{
    PyObject *given = pkg_read(message), *result = NULL;

    if (given)
        result = invoke_read(function, first, given);
    Py_XDECREF(given);
    return result;
}

static PyObject *memory_of(PyObject *object)
{
    PyObject *view = PyMemoryView_FromObject(object);
    Py_buffer buffer;
    int has_objects;

    if (!view)
        return NULL;
    if (PyObject_GetBuffer(view, &buffer, PyBUF_FULL_RO) < 0) {
        Py_DECREF(view);
        return NULL;
    }
    has_objects = pkg_memory_has_objects(buffer.format);
    PyBuffer_Release(&buffer);
    if (!has_objects)
        return Py_BuildValue("(N)", view);
    Py_DECREF(view);
    PyErr_SetString(PyExc_BufferError, "the memory has objects in it, which stay where they are");
    return NULL;
}

static PyObject *get_attribute(const struct pkg_call *call, PyObject *object)
{
    PyObject *name = pkg_names_find(call->name, call->name_length, call->hash), *found = NULL;

    if (name)
        found = PyObject_GetAttr(object, name);
    Py_XDECREF(name);
    return found;
}

static PyObject *operate(const struct pkg_call *call, PyObject *object)
{
    switch (call->op) {
    case PKG_OP_GET:
        return get_attribute(call, object);
    case PKG_OP_INVOKE:
        return may_look_at_caller(object) ? call_with_tuple(object, &call->given)
                                          : call_with(object, &call->given);
    case PKG_OP_NAMED:
        return invoke(object, NULL, &call->given);
    case PKG_OP_SPECIAL:
        return invoke(pkg_state.special, object, &call->given);
    case PKG_OP_MEMORY:
        return memory_of(object);
    case PKG_OP_TAKE:
        return PyObject_CallFunction(pkg_state.answered, "Oi", object, 0);
    case PKG_OP_NONE:
        break;
    }
    return NULL;
}

static PyObject *call_object(const struct pkg_call *call)
{
    PyObject *object = pkg_own_object(call->object), *result = NULL;

    if (object)
        result = operate(call, object);
    Py_XDECREF(object);
    return result;
}

/* ---- what is answered ---- */

/* Consumes the tuple, which may be NULL with an exception set. */
static int put_answer(struct pkg_call *call, PyObject *tuple)
{
    int rc = -1;

    pkg_message_clear(&call->answer);
    if (tuple)
        rc = pkg_values_add_own(&call->answer, tuple, call->policy);
    Py_XDECREF(tuple);
    return rc;
}

/* Consumes the result of something done with an object. */
static int put_linked(struct pkg_call *call, PyObject *result)
{
    int rc;

    if (call->op == PKG_OP_MEMORY || call->op == PKG_OP_TAKE)
        call->policy = 0;
    call->direct = 1;
    if (!call->policy)
        return put_answer(call, result);
    rc = pkg_values_add(&call->answer, result, call->policy);
    Py_DECREF(result);
    return rc == 1 ? 0 : -1;
}

/* Consumes what the target returned. */
static int put_result(struct pkg_call *call, PyObject *result)
{
    int rc = pkg_values_add(&call->answer, result, call->policy);

    call->direct = rc == 1;
    if (rc == 0)
        rc =
            put_answer(call, PyObject_CallFunction(pkg_state.answered, "Oi", result, call->policy));
    Py_DECREF(result);
    return rc < 0 ? -1 : 0;
}

/* The exception that is set, as an object; its own traceback is what it has. */
static PyObject *take_exception(void)
{
    PyObject *type, *value, *traceback;

    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (value && traceback)
        PyException_SetTraceback(value, traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return value;
}

static PyObject *text_of(PyObject *object, const char *attribute)
{
    PyObject *found = attribute ? PyObject_GetAttrString(object, attribute) : PyObject_Str(object);

    if (found && PyUnicode_Check(found))
        return found;
    Py_XDECREF(found);
    PyErr_Clear();
    return PyUnicode_FromString("?");
}

/* What the package would answer, which itself was interrupted, or is at the limit of recursion. */
static PyObject *bare_failure(PyObject *exception)
{
    PyObject *type = (PyObject *)Py_TYPE(exception), *text;

    PyErr_Clear();
    text = text_of(exception, NULL);
    return Py_BuildValue("(iNNONO)", 1, text_of(type, "__module__"), text_of(type, "__qualname__"),
                         text, text, Py_None);
}

static int put_failure(struct pkg_call *call)
{
    PyObject *exception = take_exception(), *tuple;
    int rc;

    call->direct = 0;
    call->lost = call->unread && PyErr_GivenExceptionMatches(exception, PyExc_KeyboardInterrupt);
    tuple = PyObject_CallFunctionObjArgs(call->op ? pkg_state.failed_linked : pkg_state.failed,
                                         exception, NULL);
    if (call->op)
        call->policy = PKG_LINKED;
    if (!tuple && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt))
        call->lost = 1;
    rc = put_answer(call, tuple ? tuple : bare_failure(exception));
    if (rc < 0)
        rc = put_answer(call, bare_failure(exception));
    /* Its frames would keep what was given. */
    PyException_SetTraceback(exception, Py_None);
    Py_DECREF(exception);
    return rc;
}

static PyObject *answer_to(const struct pkg_call *call)
{
    if (call->op)
        return call_object(call);
    return call->target ? call_target(call) : call_dispatcher(call);
}

/* Consumes the result. */
static int put(struct pkg_call *call, PyObject *result)
{
    if (call->op)
        return put_linked(call, result);
    return call->target ? put_result(call, result) : put_answer(call, result);
}

int pkg_answer(void *asked, struct exti_error *err)
{
    struct pkg_call *call = asked;
    PyObject *result = NULL;
    int rc = adopt_thread();

    call->direct = 0;
    call->lost = 0;
    if (rc == 0)
        result = answer_to(call);
    rc = result ? put(call, result) : -1;
    if (rc < 0)
        rc = put_failure(call);
    pkg_own_settle_rung();
    if (rc == 0)
        return 0;
    PyErr_Clear();
    *err = (struct exti_error){.code = EXTIPY_E_RAISED, .offset = EXTI_NO_OFFSET};
    snprintf(err->message, sizeof err->message, "the interpreter could not answer");
    return EXTIPY_E_RAISED;
}

int pkg_answer_in_main(void *asked, struct exti_error *err)
{
    const struct pkg_call *call = asked;
    PyGILState_STATE gil = PyGILState_Ensure();
    int rc = pkg_answer(asked, err);

    if (call->lost) /* it was meant for the program, and nothing here can take it any more */
        PyErr_SetInterrupt();
    PyGILState_Release(gil);
    return rc;
}
