#include "bindings/python/ext/arrays.h"

#include <string.h>

static PyObject *array_type; /* once numpy has been imported */
static PyObject *asarray;

static PyObject *find_array_type(void)
{
    PyObject *numpy = PyDict_GetItemString(PyImport_GetModuleDict(), "numpy"); /* borrowed */

    if (!array_type && numpy)
        array_type = PyObject_GetAttrString(numpy, "ndarray");
    PyErr_Clear(); /* it is being imported */
    return array_type;
}

/* Types of items that are described: numpy has one object for each of its own. */
static PyObject *described[16];

/* A type may carry more than a buffer's format says. */
static int has_metadata(PyObject *dtype)
{
    PyObject *metadata = PyObject_GetAttrString(dtype, "metadata");

    Py_XDECREF(metadata);
    return metadata != Py_None;
}

static int is_number(PyObject *array)
{
    Py_buffer view;
    int is = PyObject_GetBuffer(array, &view, PyBUF_FULL_RO) == 0;

    if (is) {
        is = view.format && view.format[0] && !view.format[1] &&
             strchr("?bBhHiIlLqQefdg", view.format[0]);
        PyBuffer_Release(&view);
    }
    return is;
}

/* Whether buffers describe the type of the array's items. */
static int is_described(PyObject *array, PyObject *dtype)
{
    size_t i = 0, room = sizeof described / sizeof *described;

    while (i < room && described[i] && described[i] != dtype)
        i++;
    if (i < room && described[i])
        return 1;
    if (has_metadata(dtype) || !is_number(array))
        return 0;
    if (i < room) {
        Py_INCREF(dtype);
        described[i] = dtype;
    }
    return 1;
}

int pkg_array_is(PyObject *object)
{
    static PyObject *name;
    PyObject *dtype;
    int is;

    if ((PyObject *)Py_TYPE(object) != (array_type ? array_type : find_array_type()))
        return 0;
    if (!name)
        name = PyUnicode_InternFromString("dtype");
    dtype = name ? PyObject_GetAttr(object, name) : NULL;
    is = dtype && is_described(object, dtype);
    Py_XDECREF(dtype);
    PyErr_Clear();
    return is;
}

PyObject *pkg_array_new(PyObject *memory)
{
    PyObject *numpy, *args, *array;

    if (!asarray) {
        numpy = PyImport_ImportModule("numpy");
        asarray = numpy ? PyObject_GetAttrString(numpy, "asarray") : NULL;
        Py_XDECREF(numpy);
    }
    args = asarray ? PyTuple_Pack(1, memory) : NULL;
    array = args ? PyObject_CallObject(asarray, args) : NULL;
    Py_XDECREF(args);
    return array;
}
