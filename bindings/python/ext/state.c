#include "bindings/python/ext/state.h"

struct pkg_state pkg_state;

PyObject *pkg_state_raise(int code, const char *message)
{
    PyObject *type = code == PKG_E_UNKNOWN ? pkg_state.not_found : pkg_state.error;

    if (code == EXTI_E_NOMEM)
        return PyErr_NoMemory();
    PyErr_SetString(type, message);
    return NULL;
}

struct pkg_entry *pkg_state_acquire(PyObject *args)
{
    unsigned long long id;
    struct exti_error err;
    struct pkg_entry *e;
    int rc;

    if (!PyArg_ParseTuple(args, "K", &id))
        return NULL;
    rc = pkg_state.core->acquire(&e, id, &err);
    if (rc < 0)
        pkg_state_raise(rc, err.message);
    return rc < 0 ? NULL : e;
}

void pkg_state_raise_exited(int status, const char *message)
{
    PyObject *error = PyObject_CallFunction(pkg_state.exited, "s", message);
    PyObject *number = error ? PyLong_FromLong(status) : NULL;

    if (number && PyObject_SetAttrString(error, "status", number) == 0)
        PyErr_SetObject(pkg_state.exited, error);
    Py_XDECREF(number);
    Py_XDECREF(error);
}
