#include "bindings/python/ext/holds.h"

/* Returns 1 or 0, or -1 with an exception. */
static int search(PyObject *o, PyObject *types, PyObject *seen);

static int is_wanted(PyObject *o, PyObject *types)
{
    for (Py_ssize_t i = 0, n = PyTuple_Size(types); i < n; i++)
        if ((PyObject *)Py_TYPE(o) == PyTuple_GetItem(types, i))
            return 1;
    return 0;
}

static int search_dict(PyObject *dict, PyObject *types, PyObject *seen)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    int found = 0;

    while (found == 0 && PyDict_Next(dict, &at, &key, &value))
        found = search(value, types, seen);
    return found;
}

static int search_container(PyObject *o, PyObject *types, PyObject *seen)
{
    int found = 0;

    if (PyDict_CheckExact(o))
        return search_dict(o, types, seen);
    if (PyTuple_CheckExact(o)) {
        for (Py_ssize_t i = 0; found == 0 && i < PyTuple_Size(o); i++)
            found = search(PyTuple_GetItem(o, i), types, seen);
        return found;
    }
    for (Py_ssize_t i = 0; found == 0 && i < PyList_Size(o); i++)
        found = search(PyList_GetItem(o, i), types, seen);
    return found;
}

/* Notes a container that may be met again: what has one reference is met once.  1: it was noted. */
static int note(PyObject *seen, PyObject *o)
{
    PyObject *address;
    int known;

    if (Py_REFCNT(o) == 1)
        return 0;
    address = PyLong_FromVoidPtr(o);
    known = address ? PySet_Contains(seen, address) : -1;
    if (known == 0 && PySet_Add(seen, address) < 0)
        known = -1;
    Py_XDECREF(address);
    return known;
}

static int search(PyObject *o, PyObject *types, PyObject *seen)
{
    int known, found;

    if (is_wanted(o, types))
        return 1;
    if (!PyTuple_CheckExact(o) && !PyList_CheckExact(o) && !PyDict_CheckExact(o))
        return 0;
    known = note(seen, o);
    if (known)
        return known < 0 ? -1 : 0;
    if (Py_EnterRecursiveCall(" while memory to share is looked for"))
        return -1;
    found = search_container(o, types, seen);
    Py_LeaveRecursiveCall();
    return found;
}

PyObject *pkg_holds(PyObject *module, PyObject *args)
{
    PyObject *object, *types, *seen;
    int found;

    (void)module;
    if (!PyArg_ParseTuple(args, "OO!", &object, &PyTuple_Type, &types))
        return NULL;
    seen = PySet_New(NULL);
    if (!seen)
        return NULL;
    found = search(object, types, seen);
    Py_DECREF(seen);
    return found < 0 ? NULL : PyBool_FromLong(found);
}
