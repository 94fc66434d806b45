#include "bindings/python/ext/calls.h"

#include <stdio.h>
#include <string.h>

#include "bindings/python/ext/interrupt.h"
#include "bindings/python/ext/release.h"
#include "bindings/python/ext/values.h"

/* ---- calls of the main interpreter ---- */

/* The dispatcher catches all exceptions of what it calls; this is one of its own. */
static int answer_failed(struct exti_error *err)
{
    PyObject *type, *value, *traceback, *text;
    const char *message;

    PyErr_Fetch(&type, &value, &traceback);
    text = PyObject_Str(value ? value : type);
    if (err) {
        *err = (struct exti_error){.code = EXTIPY_E_RAISED, .offset = EXTI_NO_OFFSET};
        PyObject *bytes = text ? PyUnicode_AsUTF8String(text) : NULL;
        message = bytes ? PyBytes_AsString(bytes) : "the main interpreter could not answer";
        snprintf(err->message, sizeof err->message, "%s", message);
        Py_XDECREF(bytes);
    }
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    PyErr_Clear();
    return EXTIPY_E_RAISED;
}

int pkg_calls_main(const struct pkg_message *message, struct pkg_message *answer,
                   struct exti_error *err)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *args = pkg_values_read(message->values, message->number), *result = NULL;
    struct pkg_message made = {0};
    int rc;

    if (args)
        result = PyObject_Call(pkg_state.dispatch, args, NULL);
    if (result)
        made.values = pkg_values_make(result, &made.number);
    Py_XDECREF(args);
    Py_XDECREF(result);
    rc = made.values ? 0 : answer_failed(err);
    PyGILState_Release(gil);
    if (rc == 0)
        *answer = made;
    return rc;
}

/* ---- calls of any ---- */

/* `raised`: what the dispatcher itself raised, interrupted or at the limit of recursion. */
static int call_context(const struct pkg_entry *e, const struct pkg_message *message,
                        struct pkg_message *answer, struct extipy_exception **raised,
                        struct exti_error *err)
{
    struct extipy_call call = {.size = sizeof call,
                               .callee = e->dispatch,
                               .values = message->values,
                               .args = message->number};
    struct pkg_visit visit;
    int rc;

    answer->number = 1;
    pkg_state.core->begin_visit(&visit, e->ctx);
    rc = extipy_call(e->ctx, &call, &answer->values, raised, err);
    pkg_state.core->end_visit(&visit);
    return rc;
}

/* What the dispatcher answers if it can. */
static PyObject *answer_raised(struct extipy_exception *raised)
{
    const char *name = strrchr(raised->type, '.');
    PyObject *answer;

    if (name)
        answer = Py_BuildValue("(is#sssO)", 1, raised->type, (Py_ssize_t)(name - raised->type),
                               name + 1, raised->message, raised->traceback, Py_None);
    else
        answer = Py_BuildValue("(issssO)", 1, "builtins", raised->type, raised->message,
                               raised->traceback, Py_None);
    extipy_exception_free(raised);
    return answer;
}

/* The answer may have objects in it, so the interpreter must not be closed before it is read. */
static PyObject *call_entry(const struct pkg_entry *e, const struct pkg_message *message)
{
    PyThreadState *state;
    struct extipy_exception *raised = NULL;
    struct pkg_message answer;
    struct exti_error err;
    PyObject *result;
    int rc;

    state = PyEval_SaveThread();
    if (e->ctx)
        rc = call_context(e, message, &answer, &raised, &err);
    else
        rc = pkg_state.core->call_main(message, &answer, &err);
    PyEval_RestoreThread(state);
    if (raised)
        return answer_raised(raised);
    if (rc < 0)
        return pkg_state_raise(rc, err.message);
    result = pkg_values_read(answer.values, answer.number);
    extipy_values_free(answer.values);
    return result;
}

static PyObject *call_by_id(uint64_t id, const struct pkg_message *message)
{
    struct pkg_entry *e;
    struct exti_error err;
    PyObject *result;
    int rc = pkg_state.core->acquire(&e, id, &err);

    if (rc < 0)
        return pkg_state_raise(rc, err.message);
    result = call_entry(e, message);
    pkg_state.core->release(e);
    return result;
}

PyObject *pkg_calls_call(PyObject *module, PyObject *args)
{
    struct pkg_message message;
    unsigned long long id;
    PyObject *tuple, *result;

    (void)module;
    if (!PyArg_ParseTuple(args, "KO!", &id, &PyTuple_Type, &tuple))
        return NULL;
    message.values = pkg_values_make(tuple, &message.number);
    if (!message.values)
        return NULL;
    pkg_release_begin();
    result = call_by_id(id, &message);
    extipy_values_free(message.values);
    pkg_release_end();
    return result;
}

/* ---- queues ---- */

static PyObject *queue_failed(int rc, unsigned long long id)
{
    char message[64];

    if (rc == EXTI_E_NOMEM)
        return PyErr_NoMemory();
    snprintf(message, sizeof message, "queue %llu not found", id);
    return pkg_state_raise(rc, message);
}

PyObject *pkg_calls_put(PyObject *module, PyObject *args)
{
    PyThreadState *state;
    struct pkg_message message;
    unsigned long long id;
    double seconds;
    PyObject *tuple;
    int rc;

    (void)module;
    if (!PyArg_ParseTuple(args, "KO!d", &id, &PyTuple_Type, &tuple, &seconds))
        return NULL;
    message.values = pkg_values_make(tuple, &message.number);
    if (!message.values)
        return NULL;
    state = PyEval_SaveThread();
    rc = pkg_state.core->queue_put(id, &message, (int64_t)(seconds * 1e9));
    if (rc < 0)
        extipy_values_free(message.values);
    PyEval_RestoreThread(state);
    if (rc < 0 && rc != EXTIPY_E_TIMEOUT)
        return queue_failed(rc, id);
    return PyBool_FromLong(rc == 0);
}

PyObject *pkg_calls_get(PyObject *module, PyObject *args)
{
    PyThreadState *state;
    struct pkg_message message;
    unsigned long long id;
    double seconds;
    PyObject *result;
    int rc;

    (void)module;
    if (!PyArg_ParseTuple(args, "Kd", &id, &seconds))
        return NULL;
    state = PyEval_SaveThread();
    rc = pkg_state.core->queue_get(id, &message, (int64_t)(seconds * 1e9));
    PyEval_RestoreThread(state);
    if (rc == EXTIPY_E_TIMEOUT)
        Py_RETURN_NONE;
    if (rc < 0)
        return queue_failed(rc, id);
    result = pkg_values_read(message.values, message.number);
    extipy_values_free(message.values);
    return result;
}
