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
