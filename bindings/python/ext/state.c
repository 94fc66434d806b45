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

void pkg_state_raise_exited(int status, const char *message)
{
    PyObject *error = PyObject_CallFunction(pkg_state.exited, "s", message);
    PyObject *number = error ? PyLong_FromLong(status) : NULL;

    if (number && PyObject_SetAttrString(error, "status", number) == 0)
        PyErr_SetObject(pkg_state.exited, error);
    Py_XDECREF(number);
    Py_XDECREF(error);
}
