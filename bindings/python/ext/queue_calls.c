#include "bindings/python/ext/queue_calls.h"

#include <stdio.h>

#include "bindings/python/ext/reading.h"
#include "bindings/python/ext/state.h"
#include "bindings/python/ext/values.h"

static PyObject *fail(int rc, unsigned long long id)
{
    char message[64];

    if (rc == EXTI_E_NOMEM)
        return PyErr_NoMemory();
    snprintf(message, sizeof message, "queue %llu not found", id);
    return pkg_state_raise(rc, message);
}

PyObject *pkg_queue_calls_new(PyObject *module, PyObject *args)
{
    Py_ssize_t most;
    uint64_t id;

    (void)module;
    if (!PyArg_ParseTuple(args, "n", &most))
        return NULL;
    if (pkg_state.core->queue_new(&id, most > 0 ? (size_t)most : 0) < 0)
        return PyErr_NoMemory();
    return PyLong_FromUnsignedLongLong(id);
}

PyObject *pkg_queue_calls_free(PyObject *module, PyObject *args)
{
    PyThreadState *state;
    unsigned long long id;
    int rc;

    (void)module;
    if (!PyArg_ParseTuple(args, "K", &id))
        return NULL;
    state = PyEval_SaveThread();
    rc = pkg_state.core->queue_free(id);
    PyEval_RestoreThread(state);
    return PyBool_FromLong(rc == 0);
}

PyObject *pkg_queue_calls_count(PyObject *module, PyObject *args)
{
    unsigned long long id;
    size_t count, most;

    (void)module;
    if (!PyArg_ParseTuple(args, "K", &id))
        return NULL;
    if (pkg_state.core->queue_count(id, &count, &most) < 0)
        Py_RETURN_NONE;
    return Py_BuildValue("(nn)", (Py_ssize_t)count, (Py_ssize_t)most);
}

PyObject *pkg_queue_calls_put(PyObject *module, PyObject *args)
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
    pkg_message_init(&message);
    if (pkg_values_add_own(&message, tuple, 0) < 0)
        return NULL;
    state = PyEval_SaveThread();
    rc = pkg_state.core->queue_put(id, &message, (int64_t)(seconds * 1e9));
    if (rc < 0)
        pkg_message_clear(&message);
    PyEval_RestoreThread(state);
    if (rc < 0 && rc != EXTIPY_E_TIMEOUT)
        return fail(rc, id);
    return PyBool_FromLong(rc == 0);
}

PyObject *pkg_queue_calls_get(PyObject *module, PyObject *args)
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
        return fail(rc, id);
    result = pkg_read(&message);
    pkg_message_clear(&message);
    return result;
}
