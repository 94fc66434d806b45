#include "runtime/embed/finalise.h"

#include <stdlib.h>
#include <time.h>

#include "runtime/embed/source.h"
#include "runtime/system.h"

struct ids {
    long *items;
    size_t count;
};

/* Of threads that finalisation joins: threading's, but for daemons, the main thread and those that
 * the program has come with, which live on. */
static struct pyobj *joined_threads(const struct pyrt_api *py)
{
    static const char source[] =
        "import threading\n"
        "ids = [t.native_id for t in threading.enumerate()\n"
        "       if t.native_id and not t.daemon and t is not threading.main_thread()\n"
        "       and not isinstance(t, threading._DummyThread)]\n";
    struct pyobj *names = extipy__source_run(py, source), *ids = NULL;

    if (names)
        ids = py->PyDict_GetItemString(names, "ids");
    if (ids)
        py->Py_IncRef(ids);
    py->Py_DecRef(names);
    return ids;
}

static struct ids read_ids(const struct pyrt_api *py)
{
    struct pyobj *list = joined_threads(py), *length = NULL, *item;
    struct ids ids = {0};
    long count = 0;

    if (list)
        length = py->PyObject_CallMethod(list, "__len__", NULL);
    if (length)
        count = py->PyLong_AsLong(length);
    if (count > 0)
        ids.items = calloc((size_t)count, sizeof *ids.items);
    for (long i = 0; ids.items && i < count; i++) {
        item = py->PyObject_CallMethod(list, "__getitem__", "l", i);
        if (item)
            ids.items[ids.count++] = py->PyLong_AsLong(item);
        py->Py_DecRef(item);
    }
    py->Py_DecRef(length);
    py->Py_DecRef(list);
    py->PyErr_Clear();
    return ids;
}

void extipy__finalise(const struct pyrt_api *py)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    struct ids ids = read_ids(py);
    int turns = 1000;

    py->Py_FinalizeEx();
    for (size_t i = 0; i < ids.count; i++)
        while (pyrt_thread_lives(ids.items[i]) && turns-- > 0)
            nanosleep(&pause, NULL);
    free(ids.items);
}

static void call_method(const struct pyrt_api *py, const char *module, const char *function)
{
    struct pyobj *m = py->PyImport_ImportModule(module), *done = NULL;

    if (m)
        done = py->PyObject_CallMethod(m, function, NULL);
    if (!done)
        py->PyErr_Clear();
    py->Py_DecRef(done);
    py->Py_DecRef(m);
}

void extipy__stop(const struct pyrt_api *py)
{
    call_method(py, "threading", "_shutdown");
    call_method(py, "atexit", "_run_exitfuncs");
}
