/* All of it is guarded by the GIL. */
#include "bindings/python/ext/tasks.h"

#include <string.h>
#include <unistd.h>

#include "bindings/python/ext/gates.h"

#define LEAST_ROOM 8

/* A thread that waits for a task; on its stack. */
struct sleeper {
    struct pkg_gate *gate;
    struct sleeper *next;
};

struct tasks {
    PyObject_HEAD PyObject **items; /* a ring */
    size_t first, count, room;
    struct sleeper *sleepers, **end; /* the first is who has waited longest */
    pid_t process;                   /* whose threads they are */
};

static PyObject *empty; /* queue.Empty */

/* ---- the ring ---- */

static int grow(struct tasks *self)
{
    const size_t room = self->room ? self->room * 2 : LEAST_ROOM;
    PyObject **grown = PyMem_Realloc(self->items, room * sizeof *grown);

    if (!grown) {
        PyErr_NoMemory();
        return -1;
    }
    /* What had come round to the beginning goes on behind the end. */
    memcpy(grown + self->room, grown, self->first * sizeof *grown);
    self->items = grown;
    self->room = room;
    return 0;
}

static int append(struct tasks *self, PyObject *item)
{
    if (self->count == self->room && grow(self) < 0)
        return -1;
    Py_INCREF(item);
    self->items[(self->first + self->count++) & (self->room - 1)] = item;
    return 0;
}

static PyObject *take_first(struct tasks *self)
{
    PyObject *item = self->items[self->first];

    self->first = (self->first + 1) & (self->room - 1);
    self->count--;
    return item;
}

/* ---- who waits ---- */

static void forget_sleepers(struct tasks *self)
{
    self->sleepers = NULL;
    self->end = &self->sleepers;
}

/* A forked child has none of the threads that waited, and their stacks are other threads'. */
static void forget_others(struct tasks *self)
{
    const pid_t process = getpid();

    if (self->process != process)
        forget_sleepers(self);
    self->process = process;
}

static void wake_one(struct tasks *self)
{
    struct sleeper *s;

    forget_others(self);
    s = self->sleepers;
    if (!s)
        return;
    self->sleepers = s->next;
    if (!self->sleepers)
        forget_sleepers(self);
    pkg_gate_open(s->gate);
}

/* Until somebody has put an item, which a third thread may have taken by then. */
static void sleep_once(struct tasks *self, struct pkg_gate *own)
{
    struct sleeper s = {.gate = own};

    forget_others(self);
    *self->end = &s;
    self->end = &s.next;
    pkg_gates_wait(own);
}

/* ---- the methods ---- */

static PyObject *put(PyObject *object, PyObject *item)
{
    struct tasks *self = (void *)object;

    if (append(self, item) < 0)
        return NULL;
    wake_one(self);
    Py_RETURN_NONE;
}

/* Who takes None takes no more. */
static PyObject *take(struct tasks *self)
{
    PyObject *item = take_first(self);

    pkg_gates_open_deferred();
    if (item == Py_None)
        pkg_gates_defer(0);
    return item;
}

static PyObject *get_nowait(PyObject *object, PyObject *unused)
{
    struct tasks *self = (void *)object;

    (void)unused;
    if (self->count)
        return take(self);
    PyErr_SetNone(empty);
    return NULL;
}

/* A thread that gets a task this way gets another one after it. */
static PyObject *get(PyObject *object, PyObject *args, PyObject *named)
{
    static char *names[] = {"block", NULL};
    struct tasks *self = (void *)object;
    struct pkg_gate *own;
    int block = 1;

    if (!PyArg_ParseTupleAndKeywords(args, named, "|p", names, &block))
        return NULL;
    if (!block)
        return get_nowait(object, NULL);
    own = pkg_gates_own();
    if (!own)
        return PyErr_NoMemory();
    pkg_gates_defer(1);
    while (!self->count)
        sleep_once(self, own);
    return take(self);
}

static PyObject *qsize(PyObject *object, PyObject *unused)
{
    (void)unused;
    return PyLong_FromSize_t(((struct tasks *)object)->count);
}

static PyObject *is_empty(PyObject *object, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(!((struct tasks *)object)->count);
}

/* ---- the class ---- */

static PyObject *make_tasks(PyTypeObject *type, PyObject *args, PyObject *named)
{
    struct tasks *self;

    if (PyTuple_Size(args) || (named && PyDict_Size(named))) {
        PyErr_SetString(PyExc_TypeError, "TaskQueue() takes no arguments");
        return NULL;
    }
    self = (void *)PyType_GenericAlloc(type, 0);
    if (self)
        forget_others(self);
    return (PyObject *)self;
}

static int traverse(PyObject *object, visitproc visit, void *arg)
{
    const struct tasks *self = (void *)object;

    for (size_t i = 0; i < self->count; i++)
        Py_VISIT(self->items[(self->first + i) & (self->room - 1)]);
    Py_VISIT(Py_TYPE(object));
    return 0;
}

static int clear(PyObject *object)
{
    struct tasks *self = (void *)object;

    while (self->count)
        Py_DECREF(take_first(self));
    return 0;
}

static void free_tasks(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);

    PyObject_GC_UnTrack(object);
    clear(object);
    PyMem_Free(((struct tasks *)object)->items);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

static int find_empty(void)
{
    PyObject *module = empty ? NULL : PyImport_ImportModule("queue");

    if (module)
        empty = PyObject_GetAttrString(module, "Empty");
    Py_XDECREF(module);
    return empty ? 0 : -1;
}

int pkg_tasks_add(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"put", put, METH_O, NULL},
        {"get", (PyCFunction)(void (*)(void))get, METH_VARARGS | METH_KEYWORDS, NULL},
        {"get_nowait", get_nowait, METH_NOARGS, NULL},
        {"qsize", qsize, METH_NOARGS, NULL},
        {"empty", is_empty, METH_NOARGS, NULL},
        {NULL, NULL, 0, NULL},
    };
    PyType_Slot slots[] = {{Py_tp_new, (void *)make_tasks},    {Py_tp_dealloc, (void *)free_tasks},
                           {Py_tp_traverse, (void *)traverse}, {Py_tp_clear, (void *)clear},
                           {Py_tp_methods, methods},           {0, NULL}};
    PyType_Spec spec = {.name = "extisolate._extisolate.TaskQueue",
                        .basicsize = sizeof(struct tasks),
                        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                        .slots = slots};
    PyObject *type = find_empty() == 0 ? PyType_FromSpec(&spec) : NULL;
    const int rc = type ? PyObject_SetAttrString(module, "TaskQueue", type) : -1;

    Py_XDECREF(type);
    return rc;
}
