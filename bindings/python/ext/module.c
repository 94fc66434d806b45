/* The module _extisolate: what the package's Python code stands on. */
#include "bindings/python/ext/python.h"

#include <stdlib.h>

#include "bindings/python/ext/answer.h"
#include "bindings/python/ext/caller.h"
#include "bindings/python/ext/calls.h"
#include "bindings/python/ext/collect.h"
#include "bindings/python/ext/entries.h"
#include "bindings/python/ext/gates.h"
#include "bindings/python/ext/holds.h"
#include "bindings/python/ext/interrupt.h"
#include "bindings/python/ext/linked.h"
#include "bindings/python/ext/memory.h"
#include "bindings/python/ext/output.h"
#include "bindings/python/ext/own.h"
#include "bindings/python/ext/proof.h"
#include "bindings/python/ext/proxy.h"
#include "bindings/python/ext/queue_calls.h"
#include "bindings/python/ext/queues.h"
#include "bindings/python/ext/release.h"
#include "bindings/python/ext/state.h"
#include "bindings/python/ext/target.h"
#include "bindings/python/ext/tasks.h"
#include "bindings/python/ext/values.h"
#include "bindings/python/ext/visits.h"

static const struct pkg_core own_core = {
    .open = pkg_output_open,
    .start = pkg_core_start,
    .close = pkg_output_close,
    .acquire = pkg_entries_acquire,
    .release = pkg_entries_release,
    .count_users = pkg_entries_count_users,
    .list = pkg_core_list,
    .call_main = pkg_answer_in_main,
    .begin_visit = pkg_interrupt_begin,
    .end_visit = pkg_visits_end,
    .interrupts = pkg_visits_signals,
    .queue_new = pkg_queue_new,
    .queue_free = pkg_queue_free,
    .queue_put = pkg_queue_put,
    .queue_get = pkg_queue_get,
    .queue_count = pkg_queue_count,
    .heaps = &pkg_core_heaps,
};

/* ---- methods ---- */

static PyObject *find_installation(PyObject *module, PyObject *args)
{
    PyThreadState *state;
    struct extipy_python_info info = {.size = sizeof info};
    const struct extipy_python *python;
    const char *executable;
    struct exti_error err;
    int rc;

    (void)module;
    if (!PyArg_ParseTuple(args, "s", &executable))
        return NULL;
    state = PyEval_SaveThread();
    rc = pkg_core_find(executable, &python, &err);
    PyEval_RestoreThread(state);
    if (rc < 0)
        return pkg_state_raise(rc, err.message);
    extipy_python_info(python, &info);
    return Py_BuildValue("{sssssi}", "version", info.version, "libpython", info.libpython,
                         "free_threaded", info.free_threaded);
}

static PyObject *give_core(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromVoidPtr((void *)pkg_state.core);
}

/* Called first of all in a context, where nothing can go wrong with one's own number. */
static PyObject *attach_core(PyObject *module, PyObject *args)
{
    unsigned long long id;
    struct pkg_entry *e;
    struct exti_error err;
    PyObject *address;
    int rc;

    (void)module;
    if (!PyArg_ParseTuple(args, "OK", &address, &id))
        return NULL;
    pkg_state.core = PyLong_AsVoidPtr(address);
    pkg_state.id = id;
    rc = pkg_state.core->acquire(&e, id, &err);
    if (rc < 0)
        return pkg_state_raise(rc, err.message);
    pkg_state.ctx = e->ctx;
    e->answer = pkg_answer;
    pkg_state.core->release(e);
    Py_RETURN_NONE;
}

/* The package's functions by which this interpreter answers. */
static PyObject *set_dispatch(PyObject *module, PyObject *args)
{
    PyObject *dispatch, *answered, *failed, *adopt_thread, *in_main;

    (void)module;
    if (!PyArg_ParseTuple(args, "OOOOO", &dispatch, &answered, &failed, &adopt_thread, &in_main))
        return NULL;
    Py_INCREF(args); /* and so what is in it, for good */
    pkg_state.dispatch = dispatch;
    pkg_state.answered = answered;
    pkg_state.failed = failed;
    pkg_state.adopt_thread = adopt_thread;
    pkg_state.in_main = in_main;
    Py_RETURN_NONE;
}

/* Those by which it deals with objects of others. */
static PyObject *set_proxies(PyObject *module, PyObject *args)
{
    PyObject *class_for, *special, *failed, *raised, *collect, *data_kind, *packed, *unpacked,
        *gone;

    (void)module;
    if (!PyArg_ParseTuple(args, "OOOOOOOOO", &class_for, &special, &failed, &raised, &collect,
                          &data_kind, &packed, &unpacked, &gone))
        return NULL;
    if (!pkg_state.data_types && !(pkg_state.data_types = PyDict_New()))
        return NULL;
    Py_INCREF(args);
    pkg_state.class_for = class_for;
    pkg_state.special = special;
    pkg_state.failed_linked = failed;
    pkg_state.raised = raised;
    pkg_state.collect = collect;
    pkg_state.data_kind = data_kind;
    pkg_state.packed = packed;
    pkg_state.unpacked = unpacked;
    pkg_state.gone = gone;
    Py_RETURN_NONE;
}

static PyObject *collect_circles(PyObject *module, PyObject *unused)
{
    PyThreadState *state;
    struct exti_error err;
    size_t ended;
    int rc;

    (void)module;
    (void)unused;
    state = PyEval_SaveThread();
    rc = pkg_collect(pkg_state.core, &ended, &err);
    PyEval_RestoreThread(state);
    return rc < 0 ? pkg_state_raise(rc, err.message) : PyLong_FromSize_t(ended);
}

static PyObject *count_linked(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromSize_t(atomic_load(&pkg_state.core->heaps->count));
}

static PyObject *settle(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    pkg_own_settle();
    Py_RETURN_NONE;
}

static PyObject *end_objects(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    pkg_linked_end_all(0);
    pkg_own_end();
    Py_RETURN_NONE;
}

static PyObject *forget_objects(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    pkg_linked_end_all(1);
    pkg_own_forked();
    Py_RETURN_NONE;
}

/* Asks the main interpreter, on a thread that has no GIL. */
static int interrupt_wanted(void)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *answer = PyObject_CallObject(pkg_state.wanted, NULL);
    int wanted = answer == Py_True;

    Py_XDECREF(answer);
    PyErr_Clear();
    PyGILState_Release(gil);
    return wanted;
}

static PyObject *watch_interrupts(PyObject *module, PyObject *wanted)
{
    (void)module;
    Py_INCREF(wanted);
    Py_XDECREF(pkg_state.wanted);
    pkg_state.wanted = wanted;
    if (pkg_interrupt_watch(interrupt_wanted) < 0)
        return PyErr_Format(PyExc_RuntimeError, "cannot start the thread that passes on SIGINT");
    Py_RETURN_NONE;
}

#define SETTINGS_MAX 16

/* Numbers by the names of PyConfig's members; the names live as long as the dict. */
static int read_settings(struct extipy_setting *settings, size_t *count, PyObject *dict)
{
    PyObject *name, *number;
    Py_ssize_t at = 0;

    for (*count = 0; PyDict_Next(dict, &at, &name, &number); ++*count) {
        if (*count == SETTINGS_MAX) {
            PyErr_SetString(PyExc_ValueError, "too many settings");
            return -1;
        }
        settings[*count] = (struct extipy_setting){.name = PyUnicode_AsUTF8AndSize(name, NULL),
                                                   .kind = EXTIPY_SET_INT,
                                                   .number = PyLong_AsLong(number)};
        if (PyErr_Occurred())
            return -1;
    }
    return 0;
}

static PyObject *count_interrupts(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromUnsignedLong(pkg_state.core->interrupts());
}

static PyObject *open_interpreter(PyObject *module, PyObject *args)
{
    struct extipy_setting settings[SETTINGS_MAX];
    struct pkg_opening how = {.settings = settings, .owner = pkg_state.id};
    PyThreadState *state;
    struct exti_error err;
    PyObject *dict;
    uint64_t id;
    int rc;

    (void)module;
    if (!PyArg_ParseTuple(args, "O!Ip", &PyDict_Type, &dict, &how.streams, &how.on_caller))
        return NULL;
    if (read_settings(settings, &how.setting_count, dict) < 0)
        return NULL;
    state = PyEval_SaveThread();
    rc = pkg_state.core->open(&id, &how, &err);
    PyEval_RestoreThread(state);
    return rc < 0 ? pkg_state_raise(rc, err.message) : PyLong_FromUnsignedLongLong(id);
}

static PyObject *start_interpreter(PyObject *module, PyObject *args)
{
    PyThreadState *state;
    const char *source;
    unsigned long long id;
    struct exti_error err;
    int rc;

    (void)module;
    if (!PyArg_ParseTuple(args, "Ks", &id, &source))
        return NULL;
    state = PyEval_SaveThread();
    rc = pkg_state.core->start(id, source, &err);
    PyEval_RestoreThread(state);
    if (rc < 0)
        return pkg_state_raise(rc, err.message);
    Py_RETURN_NONE;
}

static int close_reported(uint64_t id, int wait, struct pkg_report *report,
                          struct extipy_closed *closed, struct exti_error *err)
{
    PyThreadState *state;
    int rc, kept;

    if (pkg_report_begin(report) < 0)
        return EXTI_E_NOMEM;
    state = PyEval_SaveThread();
    rc = pkg_state.core->close(id, wait, report, closed, err);
    PyEval_RestoreThread(state);
    kept = pkg_report_end(report);
    return rc < 0 ? rc : kept;
}

static PyObject *close_interpreter(PyObject *module, PyObject *args)
{
    struct extipy_closed closed = {.size = sizeof closed};
    struct pkg_report report = {0};
    struct exti_error err = {.message = "out of memory"};
    PyObject *result;
    unsigned long long id;
    int wait, rc;

    (void)module;
    if (!PyArg_ParseTuple(args, "Ki", &id, &wait))
        return NULL;
    rc = close_reported(id, wait, &report, &closed, &err);
    if (rc == EXTI_E_BUSY)
        result = Py_BuildValue("");
    else if (rc < 0)
        result = pkg_state_raise(rc, err.message);
    else
        result = Py_BuildValue("(nnns)", (Py_ssize_t)closed.attached, (Py_ssize_t)closed.mapped,
                               (Py_ssize_t)closed.buffers, report.text);
    free(report.text);
    return result;
}

static PyObject *give_current(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromUnsignedLongLong(pkg_state.id);
}

static PyObject *id_list(const uint64_t *ids, size_t n)
{
    PyObject *result = PyList_New((Py_ssize_t)n);

    for (size_t i = 0; result && i < n; i++)
        if (PyList_SetItem(result, (Py_ssize_t)i, PyLong_FromUnsignedLongLong(ids[i])) < 0)
            Py_CLEAR(result);
    return result;
}

static PyObject *list_interpreters(PyObject *module, PyObject *unused)
{
    size_t room = 0, n = pkg_state.core->list(NULL, 0);
    uint64_t *ids = NULL;
    PyObject *result;

    (void)module;
    (void)unused;
    while (n > room) {
        room = n;
        PyMem_Free(ids);
        ids = PyMem_Malloc(room * sizeof *ids);
        if (!ids)
            return PyErr_NoMemory();
        n = pkg_state.core->list(ids, room);
    }
    result = id_list(ids, n);
    PyMem_Free(ids);
    return result;
}

/* How many calls are in it, and the name of its context. */
static PyObject *describe(PyObject *module, PyObject *args)
{
    struct pkg_entry *e = pkg_state_acquire(args);
    PyObject *result;

    (void)module;
    if (!e)
        return NULL;
    result = Py_BuildValue("(ns)", (Py_ssize_t)pkg_state.core->count_users(e) - 1,
                           e->ctx ? exti_ctx_name(extipy_loader(e->ctx)) : "main");
    pkg_state.core->release(e);
    return result;
}

/* Why its own threads have no directory of their own; None: they have. */
static PyObject *why_no_directory(PyObject *module, PyObject *args)
{
    struct pkg_entry *e = pkg_state_acquire(args);
    struct exti_error err;
    int rc;

    (void)module;
    if (!e)
        return NULL;
    rc = e->ctx ? extipy_directory(e->ctx, &err) : 0;
    pkg_state.core->release(e);
    return rc < 0 ? PyUnicode_FromString(err.message) : Py_BuildValue("");
}

static PyObject *is_plain(PyObject *module, PyObject *args)
{
    PyObject *object;
    int policy;

    (void)module;
    if (!PyArg_ParseTuple(args, "Oi", &object, &policy))
        return NULL;
    return PyBool_FromLong(pkg_values_plain(object, policy));
}

static PyObject *is_unchanged(PyObject *module, PyObject *entry)
{
    (void)module;
    if (!PyTuple_Check(entry)) {
        PyErr_SetString(PyExc_TypeError, "it is no entry");
        return NULL;
    }
    return PyBool_FromLong(pkg_target_unchanged(entry));
}

/* Raises an exception in a thread of this interpreter; None: takes back one that waits. */
static PyObject *raise_in(PyObject *module, PyObject *args)
{
    unsigned long thread;
    PyObject *type;

    (void)module;
    if (!PyArg_ParseTuple(args, "kO", &thread, &type))
        return NULL;
    return PyLong_FromLong(PyThreadState_SetAsyncExc(thread, type == Py_None ? NULL : type));
}

static PyObject *count_lingering(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromSize_t(extipy_lingering());
}

/* The main interpreter ends. */
static PyObject *stop(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    pkg_interrupt_stop();
    pkg_core_stop();
    pkg_release_stop();
    Py_RETURN_NONE;
}

static PyObject *forked(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    pkg_core_forked();
    pkg_interrupt_forked();
    pkg_release_forked();
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"find", find_installation, METH_VARARGS, NULL},
    {"core", give_core, METH_NOARGS, NULL},
    {"attach", attach_core, METH_VARARGS, NULL},
    {"set_dispatch", set_dispatch, METH_VARARGS, NULL},
    {"watch_interrupts", watch_interrupts, METH_O, NULL},
    {"interrupts", count_interrupts, METH_NOARGS, NULL},
    {"open", open_interpreter, METH_VARARGS, NULL},
    {"start", start_interpreter, METH_VARARGS, NULL},
    {"close", close_interpreter, METH_VARARGS, NULL},
    {"current", give_current, METH_NOARGS, NULL},
    {"interpreters", list_interpreters, METH_NOARGS, NULL},
    {"describe", describe, METH_VARARGS, NULL},
    {"why_no_directory", why_no_directory, METH_VARARGS, NULL},
    {"prove", pkg_proof_prove, METH_VARARGS, NULL},
    {"plain", is_plain, METH_VARARGS, NULL},
    {"unchanged", is_unchanged, METH_O, NULL},
    {"holds", pkg_holds, METH_VARARGS, NULL},
    {"raise_in", raise_in, METH_VARARGS, NULL},
    {"lingering", count_lingering, METH_NOARGS, NULL},
    {"queue_new", pkg_queue_calls_new, METH_VARARGS, NULL},
    {"queue_free", pkg_queue_calls_free, METH_VARARGS, NULL},
    {"queue_put", pkg_queue_calls_put, METH_VARARGS, NULL},
    {"queue_get", pkg_queue_calls_get, METH_VARARGS, NULL},
    {"queue_count", pkg_queue_calls_count, METH_VARARGS, NULL},
    {"set_proxies", set_proxies, METH_VARARGS, NULL},
    {"share", pkg_linked_share, METH_VARARGS, NULL},
    {"special", (PyCFunction)(void (*)(void))pkg_proxy_special, METH_FASTCALL | METH_KEYWORDS,
     NULL},
    {"copy", pkg_proxy_copy, METH_O, NULL},
    {"home", pkg_proxy_home, METH_O, NULL},
    {"callable_class", pkg_proxy_class, METH_O, NULL},
    {"collect", collect_circles, METH_NOARGS, NULL},
    {"linked", count_linked, METH_NOARGS, NULL},
    {"settle", settle, METH_NOARGS, NULL},
    {"end_objects", end_objects, METH_NOARGS, NULL},
    {"forget_objects", forget_objects, METH_NOARGS, NULL},
    {"stop", stop, METH_NOARGS, NULL},
    {"forked", forked, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* ---- the module ---- */

/* One that somebody else raises has no status. */
static PyObject *make_exited(void)
{
    PyObject *members = Py_BuildValue("{sO}", "status", Py_None), *made = NULL;

    if (members)
        made = PyErr_NewExceptionWithDoc(
            "extisolate.InterpreterExitedError",
            "Code of the interpreter has ended it by os._exit or the like, with ``status``.",
            pkg_state.error, members);
    Py_XDECREF(members);
    return made;
}

static int add_exceptions(PyObject *module)
{
    if (!pkg_state.error)
        pkg_state.error = PyErr_NewExceptionWithDoc("extisolate.InterpreterError",
                                                    "An error of interpreters.", NULL, NULL);
    if (pkg_state.error && !pkg_state.not_found)
        pkg_state.not_found = PyErr_NewExceptionWithDoc("extisolate.InterpreterNotFoundError",
                                                        "There is no such interpreter, or no more.",
                                                        pkg_state.error, NULL);
    if (pkg_state.not_found && !pkg_state.exited)
        pkg_state.exited = make_exited();
    if (!pkg_state.exited ||
        PyObject_SetAttrString(module, "InterpreterExitedError", pkg_state.exited) < 0)
        return -1;
    if (PyObject_SetAttrString(module, "InterpreterError", pkg_state.error) < 0)
        return -1;
    return PyObject_SetAttrString(module, "InterpreterNotFoundError", pkg_state.not_found);
}

static int add_dict(PyObject *module, const char *name, PyObject **dict)
{
    if (!*dict)
        *dict = PyDict_New();
    return *dict ? PyObject_SetAttrString(module, name, *dict) : -1;
}

/* Its state is the process's, and threads find their state in the main interpreter only. */
static int fill_module(PyObject *module)
{
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
        PyErr_SetString(PyExc_ImportError,
                        "extisolate cannot be imported in sub-interpreters of CPython's own");
        return -1;
    }
    if (!pkg_state.core)
        pkg_state.core = &own_core;
    if (add_dict(module, "targets", &pkg_state.targets) < 0 ||
        add_dict(module, "kept", &pkg_state.kept) < 0)
        return -1;
    if (add_exceptions(module) < 0 || pkg_caller_add(module) < 0 || pkg_proxy_add(module) < 0)
        return -1;
    if (pkg_gates_add(module) < 0 || pkg_tasks_add(module) < 0)
        return -1;
    return pkg_memory_init();
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)fill_module}, {0, NULL}};
static struct PyModuleDef definition = {.m_base = PyModuleDef_HEAD_INIT,
                                        .m_name = "_extisolate",
                                        .m_methods = methods,
                                        .m_slots = slots};

PyMODINIT_FUNC PyInit__extisolate(void)
{
    return PyModuleDef_Init(&definition);
}
