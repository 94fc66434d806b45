/* How the table reaches Python's objects. */
#include "module.h"

static int weak_counts;

void natives_count_weak(int on)
{
    weak_counts = on;
}

/* Each class has a weak reference, its base's, so those of classes tell nothing. */
static int has_weak(PyObject *o)
{
    const Py_ssize_t offset = Py_TYPE(o)->tp_weaklistoffset;

    return offset != 0 && !PyType_Check(o) && *(PyObject **)(void *)((char *)o + offset) != NULL;
}

static int64_t count(void *user, const void *native)
{
    PyObject *o = (PyObject *)native;

    (void)user;
    return Py_REFCNT(o) + (weak_counts && has_weak(o));
}

/* The count of an immortal object stays as it is (PEP 683). */
static void add(void *user, void *native, int64_t n)
{
    PyObject *o = native;

    (void)user;
    Py_SET_REFCNT(o, Py_REFCNT(o) + (Py_ssize_t)n);
}

struct visiting {
    exti_native_visit visit;
    void *arg;
};

static int visit_one(PyObject *o, void *arg)
{
    const struct visiting *v = arg;

    return v->visit(o, v->arg);
}

/* What the collector does not track has no circle, and may be half made. */
static int traverse(void *user, void *native, exti_native_visit visit, void *arg)
{
    struct visiting v = {visit, arg};
    PyObject *o = native;

    (void)user;
    if (!PyObject_IS_GC(o) || !PyObject_GC_IsTracked(o))
        return 0;
    return Py_TYPE(o)->tp_traverse(o, visit_one, &v);
}

const struct exti_natives natives = {.count = count, .add = add, .traverse = traverse};
