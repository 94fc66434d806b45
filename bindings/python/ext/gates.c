#include "bindings/python/ext/gates.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

struct pkg_gate {
    atomic_size_t refs;
    atomic_int open;
    PyThread_type_lock lock; /* taken as long as it is closed */
};

/* What the thread is to open; more than these it opens at once. */
#define MOST_DEFERRED 4

static _Thread_local struct {
    struct pkg_gate *own;
    struct pkg_gate *deferred[MOST_DEFERRED];
    int count, defers;
} mine;
static pthread_key_t end_key; /* for its destructor */
static pthread_once_t end_once = PTHREAD_ONCE_INIT;
static int end_error;

/* ---- one gate ---- */

static struct pkg_gate *new_gate(void)
{
    struct pkg_gate *g = malloc(sizeof *g);

    if (!g)
        return NULL;
    atomic_init(&g->refs, 1);
    atomic_init(&g->open, 0);
    g->lock = PyThread_allocate_lock();
    if (!g->lock) {
        free(g);
        return NULL;
    }
    PyThread_acquire_lock(g->lock, WAIT_LOCK);
    return g;
}

static void release_gate(struct pkg_gate *g)
{
    if (!g || atomic_fetch_sub(&g->refs, 1) != 1)
        return;
    if (!atomic_load(&g->open))
        PyThread_release_lock(g->lock);
    PyThread_free_lock(g->lock);
    free(g);
}

void pkg_gate_open(struct pkg_gate *g)
{
    if (!atomic_exchange(&g->open, 1))
        PyThread_release_lock(g->lock);
}

/* The lock has been taken. */
static void close_gate(struct pkg_gate *g)
{
    atomic_store(&g->open, 0);
}

/* ---- what a thread is to open ---- */

void pkg_gates_open_deferred(void)
{
    for (int i = 0; i < mine.count; i++) {
        pkg_gate_open(mine.deferred[i]);
        release_gate(mine.deferred[i]);
    }
    mine.count = 0;
}

static void defer(struct pkg_gate *g)
{
    atomic_fetch_add(&g->refs, 1);
    mine.deferred[mine.count++] = g;
}

/* A worker that an exception has ended waits for no further task. */
static void end_thread(void *unused)
{
    (void)unused;
    pkg_gates_open_deferred();
    release_gate(mine.own);
    mine.own = NULL;
    mine.defers = 0;
}

static void make_end_key(void)
{
    end_error = pthread_key_create(&end_key, end_thread);
}

struct pkg_gate *pkg_gates_own(void)
{
    if (mine.own)
        return mine.own;
    pthread_once(&end_once, make_end_key);
    if (end_error || pthread_setspecific(end_key, &mine) != 0)
        return NULL;
    return mine.own = new_gate();
}

void pkg_gates_wait(struct pkg_gate *own)
{
    PyThreadState *state = PyEval_SaveThread();

    pkg_gates_open_deferred();
    PyThread_acquire_lock(own->lock, WAIT_LOCK);
    close_gate(own);
    PyEval_RestoreThread(state);
}

void pkg_gates_defer(int defers)
{
    mine.defers = defers;
}

/* ---- the class ---- */

struct gate_object {
    PyObject_HEAD struct pkg_gate *gate;
};

static PyObject *make_object(PyTypeObject *type, PyObject *args, PyObject *named)
{
    struct gate_object *self;

    if (PyTuple_Size(args) || (named && PyDict_Size(named))) {
        PyErr_SetString(PyExc_TypeError, "Gate() takes no arguments");
        return NULL;
    }
    self = (void *)PyType_GenericAlloc(type, 0);
    if (self && !(self->gate = new_gate())) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void free_object(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    release_gate(((struct gate_object *)self)->gate);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* In microseconds. */
static PY_TIMEOUT_T time_until(double end)
{
    const double left = end - now();

    return left > 0 ? (PY_TIMEOUT_T)(left * 1e6) : 0;
}

static PyLockStatus take_lock(struct pkg_gate *g, PY_TIMEOUT_T most)
{
    PyThreadState *state = PyEval_SaveThread();
    PyLockStatus got = PyThread_acquire_lock_timed(g->lock, most, 1);

    PyEval_RestoreThread(state);
    return got;
}

/* Seconds, or None.  False: it was not opened in that time. */
static PyObject *wait_open(PyObject *self, PyObject *timeout)
{
    struct pkg_gate *g = ((struct gate_object *)self)->gate;
    const int endless = timeout == Py_None;
    const double seconds = endless ? 0 : PyFloat_AsDouble(timeout);
    double end;
    PyLockStatus got;

    if (PyErr_Occurred())
        return NULL;
    end = endless ? 0 : now() + seconds;
    do {
        got = take_lock(g, endless ? -1 : time_until(end));
        if (got == PY_LOCK_INTR && PyErr_CheckSignals() < 0)
            return NULL;
    } while (got == PY_LOCK_INTR);
    if (got == PY_LOCK_ACQUIRED)
        close_gate(g);
    return PyBool_FromLong(got == PY_LOCK_ACQUIRED);
}

static PyObject *open_now(PyObject *self, PyObject *unused)
{
    (void)unused;
    pkg_gate_open(((struct gate_object *)self)->gate);
    Py_RETURN_NONE;
}

/* Those run before the thread waits, and may wait for who waits here. */
static int has_callbacks(PyObject *future)
{
    PyObject *callbacks = PyObject_GetAttrString(future, "_done_callbacks");
    const int has = callbacks ? PyObject_IsTrue(callbacks) : -1;

    Py_XDECREF(callbacks);
    PyErr_Clear();
    return has != 0;
}

/* What a future calls its waiters with when it is done (concurrent/futures/_base.py). */
static PyObject *add_done(PyObject *self, PyObject *future)
{
    struct pkg_gate *g = ((struct gate_object *)self)->gate;

    if (mine.defers && mine.count < MOST_DEFERRED && !has_callbacks(future))
        defer(g);
    else
        pkg_gate_open(g);
    Py_RETURN_NONE;
}

int pkg_gates_add(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"wait", wait_open, METH_O, NULL},         {"open", open_now, METH_NOARGS, NULL},
        {"add_result", add_done, METH_O, NULL},    {"add_exception", add_done, METH_O, NULL},
        {"add_cancelled", add_done, METH_O, NULL}, {NULL, NULL, 0, NULL},
    };
    PyType_Slot slots[] = {{Py_tp_new, (void *)make_object},
                           {Py_tp_dealloc, (void *)free_object},
                           {Py_tp_methods, methods},
                           {0, NULL}};
    PyType_Spec spec = {.name = "extisolate._extisolate.Gate",
                        .basicsize = sizeof(struct gate_object),
                        .flags = Py_TPFLAGS_DEFAULT,
                        .slots = slots};
    PyObject *type = PyType_FromSpec(&spec);
    const int rc = type ? PyObject_SetAttrString(module, "Gate", type) : -1;

    Py_XDECREF(type);
    return rc;
}
