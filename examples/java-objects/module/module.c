/* The module javaobjects. */
#include "module.h"

/* Code that runs at an object's end sees no pending exception, and leaves none. */
static void release(void *native)
{
    PyObject *type, *value, *trace;

    PyErr_Fetch(&type, &value, &trace);
    Py_DECREF((PyObject *)native);
    PyErr_Restore(type, value, trace);
}

/* Its memory as a buffer, such as an array's, or as its type has it. */
static int64_t weight(const void *native)
{
    PyObject *o = (PyObject *)native, *type, *value, *trace;
    const Py_ssize_t items =
        PyType_HasFeature(Py_TYPE(o), Py_TPFLAGS_LONG_SUBCLASS) ? 0 : Py_TYPE(o)->tp_itemsize;
    int64_t bytes = Py_TYPE(o)->tp_basicsize;
    Py_buffer buffer;

    if (items)
        bytes += items * Py_SIZE(o);
    if (!PyObject_CheckBuffer(o))
        return bytes;
    PyErr_Fetch(&type, &value, &trace);
    if (PyObject_GetBuffer(o, &buffer, PyBUF_FULL_RO) == 0) {
        bytes = buffer.len;
        PyBuffer_Release(&buffer);
    }
    PyErr_Restore(type, value, trace);
    return bytes;
}

static struct python_half python_half = {
    .perform = perform,
    .new_shell = shell_new,
    .shell_ended = shell_ended,
    .count_weak = natives_count_weak,
    .weight = weight,
    .release = release,
};

/* Gets the address of the host half, and gives that of this one. */
static PyObject *begin(PyObject *module, PyObject *address)
{
    (void)module;
    java = PyLong_AsVoidPtr(address);
    if (!java)
        return NULL;
    python_half.natives = natives;
    return PyLong_FromVoidPtr(&python_half);
}

static PyMethodDef functions[] = {{"begin", begin, METH_O, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                        "javaobjects",
                                        "Java objects in Python.",
                                        -1,
                                        functions,
                                        NULL,
                                        NULL,
                                        NULL,
                                        NULL};

PyMODINIT_FUNC PyInit_javaobjects(void)
{
    PyObject *module = PyModule_Create(&definition);

    if (module && types_begin(module) < 0)
        Py_CLEAR(module);
    return module;
}
