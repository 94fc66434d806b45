/* The types javaobjects.Object, a shell of a Java object, and javaobjects.Method. */
#include "module.h"

#include <stdlib.h>

static PyTypeObject *method_type;

/* ---- asking Java ----------------------------------------------------------------------------- */

struct question {
    enum request request;
    PyObject *self, *name; /* `name` may be NULL */
    PyObject *const *args;
    size_t count;
    struct value *values; /* the object, its name, and the arguments */
};

static int convert_all(const struct question *q)
{
    if (convert_to_java(q->self, &q->values[0]) < 0 ||
        (q->name && convert_text_to_java(q->name, &q->values[1]) < 0))
        return -1;
    for (size_t i = 0; i < q->count; i++)
        if (convert_to_java(q->args[i], &q->values[2 + i]) < 0)
            return -1;
    return 0;
}

/* Whoever may wait for Java's code has no GIL. */
static PyObject *call_java(const struct question *q, enum kind *kind)
{
    struct value *v = q->values;
    PyThreadState *state = PyEval_SaveThread();
    struct outcome outcome;
    PyObject *result;

    java->invoke(java->host, q->request, v[0].object, q->name ? &v[1] : NULL, v + 2, q->count,
                 &outcome);
    PyEval_RestoreThread(state);
    if (kind)
        *kind = outcome.value.kind;
    result = outcome.raised ? raise_outcome(&outcome) : convert_to_python(&outcome.value);
    convert_free(&outcome.value, 1);
    convert_free(&outcome.message, 1);
    return result;
}

static PyObject *ask(struct question *q, enum kind *kind)
{
    PyObject *result = NULL;
    int rc;

    q->values = calloc(q->count + 2, sizeof *q->values);
    if (!q->values)
        return PyErr_NoMemory();
    rc = java->begin(java->host, 2 * q->count + 8);
    if (rc < 0) {
        free(q->values);
        convert_reason(rc);
        return NULL;
    }
    if (convert_all(q) == 0)
        result = call_java(q, kind);
    java->end(java->host);
    convert_free(q->values, q->count + 2);
    free(q->values);
    return result;
}

static PyObject *call(PyObject *self, PyObject *name, PyObject *args, PyObject *kwargs)
{
    struct question q = {
        ASK_CALL, self, name, ((PyTupleObject *)args)->ob_item, (size_t)PyTuple_GET_SIZE(args),
        NULL};

    if (kwargs && PyDict_GET_SIZE(kwargs)) {
        PyErr_SetString(PyExc_TypeError, "Java takes no keyword arguments");
        return NULL;
    }
    return ask(&q, NULL);
}

/* ---- methods --------------------------------------------------------------------------------- */

struct method {
    PyObject base;
    PyObject *self, *name;
};

static PyObject *method_new(PyObject *self, PyObject *name)
{
    struct method *m = PyObject_GC_New(struct method, method_type);

    if (!m)
        return NULL;
    Py_INCREF(self);
    Py_INCREF(name);
    m->self = self;
    m->name = name;
    PyObject_GC_Track(m);
    return (PyObject *)m;
}

static void method_dealloc(PyObject *o)
{
    PyTypeObject *type = Py_TYPE(o);
    struct method *m = (struct method *)o;

    PyObject_GC_UnTrack(o);
    Py_DECREF(m->self);
    Py_DECREF(m->name);
    PyObject_GC_Del(o);
    Py_DECREF(type);
}

static int method_traverse(PyObject *o, visitproc visit, void *arg)
{
    Py_VISIT(((struct method *)o)->self);
    Py_VISIT(((struct method *)o)->name);
    Py_VISIT(Py_TYPE(o));
    return 0;
}

static PyObject *method_call(PyObject *o, PyObject *args, PyObject *kwargs)
{
    struct method *m = (struct method *)o;

    return call(m->self, m->name, args, kwargs);
}

static PyType_Slot method_slots[] = {{Py_tp_dealloc, method_dealloc},
                                     {Py_tp_traverse, method_traverse},
                                     {Py_tp_call, method_call},
                                     {0, NULL}};
static PyType_Spec method_spec = {
    "javaobjects.Method", sizeof(struct method), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, method_slots};

/* ---- shells ---------------------------------------------------------------------------------- */

static PyObject *shell_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return call(self, NULL, args, kwargs);
}

/* Names with two underscores are the type's own. */
static PyObject *shell_getattro(PyObject *self, PyObject *name)
{
    struct question q = {ASK_GET, self, name, NULL, 0, NULL};
    enum kind kind = KIND_NONE;
    PyObject *result;

    if (PyUnicode_GET_LENGTH(name) > 1 && PyUnicode_READ_CHAR(name, 0) == 0x5f &&
        PyUnicode_READ_CHAR(name, 1) == 0x5f)
        return PyObject_GenericGetAttr(self, name);
    result = ask(&q, &kind);
    if (!result || (kind != KIND_METHOD && kind != KIND_ABSENT))
        return result;
    Py_DECREF(result);
    if (kind == KIND_METHOD)
        return method_new(self, name);
    PyErr_Format(PyExc_AttributeError, "the Java object has no public field or method %R", name);
    return NULL;
}

static int shell_setattro(PyObject *self, PyObject *name, PyObject *value)
{
    struct question q = {ASK_SET, self, name, &value, 1, NULL};
    enum kind kind = KIND_NONE;
    PyObject *result = NULL;

    if (value)
        result = ask(&q, &kind);
    if (!value || (result && kind == KIND_ABSENT))
        PyErr_Format(PyExc_AttributeError, "the Java object has no public field %R to %s", name,
                     value ? "set" : "delete");
    Py_XDECREF(result);
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *shell_str(PyObject *self)
{
    struct question q = {ASK_STR, self, NULL, NULL, 0, NULL};

    return ask(&q, NULL);
}

static PyObject *shell_compare(PyObject *self, PyObject *other, int op)
{
    struct question q = {ASK_EQUALS, self, NULL, &other, 1, NULL};
    PyObject *equal;

    if ((op != Py_EQ && op != Py_NE) || !shell_is(other))
        Py_RETURN_NOTIMPLEMENTED;
    if (self == other)
        return PyBool_FromLong(op == Py_EQ);
    equal = ask(&q, NULL);
    if (!equal || op == Py_EQ)
        return equal;
    Py_DECREF(equal);
    return PyBool_FromLong(equal != Py_True);
}

static Py_hash_t shell_hash(PyObject *self)
{
    struct question q = {ASK_HASH, self, NULL, NULL, 0, NULL};
    PyObject *hash = ask(&q, NULL);
    const long value = hash ? PyLong_AsLong(hash) : -1;

    Py_XDECREF(hash);
    return value == -1 && !PyErr_Occurred() ? -2 : value;
}

static PyType_Slot object_slots[] = {{Py_tp_dealloc, shell_dealloc},
                                     {Py_tp_call, shell_call},
                                     {Py_tp_getattro, shell_getattro},
                                     {Py_tp_setattro, shell_setattro},
                                     {Py_tp_str, shell_str},
                                     {Py_tp_richcompare, shell_compare},
                                     {Py_tp_hash, shell_hash},
                                     {Py_tp_traverse, shell_traverse},
                                     {0, NULL}};
static PyType_Spec object_spec = {
    "javaobjects.Object", sizeof(struct shell), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, object_slots};

int types_begin(PyObject *module)
{
    shell_type = (PyTypeObject *)PyType_FromSpec(&object_spec);
    method_type = (PyTypeObject *)PyType_FromSpec(&method_spec);
    java_error = PyErr_NewException("javaobjects.Error", NULL, NULL);
    if (!shell_type || !method_type || !java_error)
        return -1;
    if (PyModule_AddType(module, shell_type) < 0 || PyModule_AddType(module, method_type) < 0)
        return -1;
    return PyModule_AddObjectRef(module, "Error", java_error);
}
