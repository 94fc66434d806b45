#include "bindings/python/ext/types.h"

/* By the address of a type: what is known, and a weak reference to the type, which takes this out
 * before another type can have the address. */
enum { VALUE, WEAK };

PyObject *pkg_types_get(PyObject *known, PyObject *type)
{
    PyObject *address = PyLong_FromVoidPtr(type);
    PyObject *entry = address ? PyDict_GetItemWithError(known, address) : NULL;

    Py_XDECREF(address);
    return entry ? PyTuple_GetItem(entry, VALUE) : NULL;
}

/* `place` is the dict and the address. */
static PyObject *forget(PyObject *place, PyObject *weak)
{
    PyObject *known = PyTuple_GetItem(place, 0), *address = PyTuple_GetItem(place, 1);
    PyObject *entry = PyDict_GetItemWithError(known, address);

    /* A finaliser may have used the type since its weak references were cleared. */
    if (entry && PyTuple_GetItem(entry, WEAK) == weak && PyDict_DelItem(known, address) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *watch(PyObject *known, PyObject *address, PyObject *type)
{
    static PyMethodDef method = {"forget", forget, METH_O, NULL};
    PyObject *place = PyTuple_Pack(2, known, address);
    PyObject *callback = place ? PyCFunction_New(&method, place) : NULL;
    PyObject *weak = callback ? PyWeakref_NewRef(type, callback) : NULL;

    Py_XDECREF(place);
    Py_XDECREF(callback);
    return weak;
}

int pkg_types_set(PyObject *known, PyObject *type, PyObject *value)
{
    PyObject *address = PyLong_FromVoidPtr(type);
    PyObject *weak = address ? watch(known, address, type) : NULL;
    PyObject *entry = weak ? PyTuple_Pack(2, value, weak) : NULL;
    int rc = entry ? PyDict_SetItem(known, address, entry) : -1;

    Py_XDECREF(address);
    Py_XDECREF(weak);
    Py_XDECREF(entry);
    return rc;
}
