/* What Java does with a Python object. */
#include "module.h"

#include <stdlib.h>
#include <string.h>

static PyObject *run(PyObject *text, int start)
{
    PyObject *module = PyImport_AddModule("__main__"); /* borrowed */
    PyObject *names = module ? PyModule_GetDict(module) : NULL;
    const char *source = names ? PyUnicode_AsUTF8(text) : NULL;

    return source ? PyRun_String(source, start, names, names) : NULL;
}

static PyObject *done(int rc)
{
    if (rc < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *call(PyObject *const *args, size_t count)
{
    return PyObject_Vectorcall(args[0], args + 1, count - 1, NULL);
}

static PyObject *hash(PyObject *o)
{
    const Py_hash_t value = PyObject_Hash(o);

    return value == -1 ? NULL : PyLong_FromSsize_t(value);
}

static PyObject *length(PyObject *o)
{
    const Py_ssize_t value = PyObject_Size(o);

    return value < 0 ? NULL : PyLong_FromSsize_t(value);
}

static PyObject *equals(PyObject *a, PyObject *b)
{
    const int equal = PyObject_RichCompareBool(a, b, Py_EQ);

    return equal < 0 ? NULL : PyBool_FromLong(equal);
}

/* NULL without an exception: an iteration has ended. */
static PyObject *operate(enum operation op, PyObject *const *a, size_t count)
{
    switch (op) {
    case OP_GET_ATTR:
        return PyObject_GetAttr(a[0], a[1]);
    case OP_SET_ATTR:
        return done(PyObject_SetAttr(a[0], a[1], a[2]));
    case OP_GET_ITEM:
        return PyObject_GetItem(a[0], a[1]);
    case OP_SET_ITEM:
        return done(PyObject_SetItem(a[0], a[1], a[2]));
    case OP_CALL:
        return call(a, count);
    case OP_STR:
        return PyObject_Str(a[0]);
    case OP_ITERATE:
        return PyObject_GetIter(a[0]);
    case OP_NEXT:
        return PyIter_Next(a[0]);
    case OP_EQUALS:
        return equals(a[0], a[1]);
    case OP_HASH:
        return hash(a[0]);
    case OP_LENGTH:
        return length(a[0]);
    case OP_EVAL:
        return run(a[0], Py_eval_input);
    case OP_EXEC:
        return run(a[0], Py_file_input);
    }
    PyErr_SetString(PyExc_SystemError, "there is no such operation");
    return NULL;
}

static int convert_args(const struct value *args, size_t count, PyObject **objects)
{
    for (size_t i = 0; i < count; i++) {
        objects[i] = convert_to_python(&args[i]);
        if (!objects[i])
            return -1;
    }
    return 0;
}

static void perform_on(enum operation op, const struct value *args, size_t count,
                       PyObject **objects, struct outcome *outcome)
{
    PyObject *result = NULL;

    if (convert_args(args, count, objects) == 0)
        result = operate(op, objects, count);
    if (result)
        convert_to_java(result, &outcome->value);
    else
        outcome->value.kind = KIND_END;
    if (PyErr_Occurred())
        raise_fetch(outcome);
    Py_XDECREF(result);
    for (size_t i = 0; i < count; i++)
        Py_XDECREF(objects[i]);
}

void perform(enum operation op, const struct value *args, size_t count, struct outcome *outcome)
{
    PyObject *few[8] = {NULL}, **objects = count <= 8 ? few : calloc(count, sizeof *objects);

    memset(outcome, 0, sizeof *outcome);
    if (objects) {
        perform_on(op, args, count, objects, outcome);
    } else {
        PyErr_NoMemory();
        raise_fetch(outcome);
    }
    if (objects != few)
        free(objects);
}
