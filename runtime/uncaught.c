#include "runtime/uncaught.h"

#include <pthread.h>
#include <signal.h>

/* Keeps tracebacks, which are many small writes, of different contexts apart. */
static pthread_mutex_t printing = PTHREAD_MUTEX_INITIALIZER;

struct exception {
    struct pyobj *type, *value, *traceback;
};

static void fetch_exception(const struct pyrt_api *py, struct exception *e)
{
    py->PyErr_Fetch(&e->type, &e->value, &e->traceback);
    py->PyErr_NormalizeException(&e->type, &e->value, &e->traceback);
    if (e->value && e->traceback)
        py->PyException_SetTraceback(e->value, e->traceback);
}

static void drop_exception(const struct pyrt_api *py, struct exception *e)
{
    py->Py_DecRef(e->type);
    py->Py_DecRef(e->value);
    py->Py_DecRef(e->traceback);
}

static void display(const struct pyrt_api *py, const struct exception *e)
{
    if (e->type)
        py->PyErr_Display(e->type, e->value, e->traceback);
}

static void flush_stream(const struct pyrt_api *py, const char *name)
{
    struct pyobj *stream = py->PySys_GetObject(name), *result;

    if (!stream || stream == py->none)
        return;
    result = py->PyObject_CallMethod(stream, "flush", NULL);
    if (!result)
        py->PyErr_Clear();
    py->Py_DecRef(result);
}

static void print_text(const struct pyrt_api *py, struct pyobj *object)
{
    struct pyobj *stream = py->PySys_GetObject("stderr");
    int rc;

    if (stream && stream != py->none)
        rc = py->PyFile_WriteObject(object, stream, PYRT_PRINT_RAW);
    else
        rc = py->PyObject_Print(object, stderr, PYRT_PRINT_RAW);
    if (rc != 0)
        py->PyErr_Clear();
    py->PySys_WriteStderr("\n");
}

/* SystemExit(None) is 0, an integer is itself, anything else is printed and is 1. */
static int exit_status(const struct pyrt_api *py, struct exception *e)
{
    struct pyobj *code = e->value ? py->PyObject_GetAttrString(e->value, "code") : NULL;
    long status = 1;

    if (!code) {
        py->PyErr_Clear();
        print_text(py, e->value);
    } else if (code == py->none) {
        status = 0;
    } else if (py->PyObject_IsInstance(code, py->long_type) == 1) {
        status = py->PyLong_AsLong(code);
        if (status == -1)
            py->PyErr_Clear();
    } else {
        print_text(py, code);
    }
    py->Py_DecRef(code);
    drop_exception(py, e);
    return (int)(status & 0xFF);
}

static void set_last_exception(const struct pyrt_api *py, const struct exception *e)
{
    if (py->build.minor >= 12)
        py->PySys_SetObject("last_exc", e->value);
    py->PySys_SetObject("last_type", e->type);
    py->PySys_SetObject("last_value", e->value);
    py->PySys_SetObject("last_traceback", e->traceback ? e->traceback : py->none);
    py->PyErr_Clear();
}

/* sys.excepthook raised an exception itself. */
static int hook_failed(const struct pyrt_api *py, struct exception *original)
{
    struct exception e;

    if (py->PyErr_ExceptionMatches(*py->system_exit)) {
        fetch_exception(py, &e);
        return exit_status(py, &e);
    }
    fetch_exception(py, &e);
    flush_stream(py, "stdout");
    py->PySys_WriteStderr("Error in sys.excepthook:\n");
    display(py, &e);
    py->PySys_WriteStderr("\nOriginal exception was:\n");
    display(py, original);
    drop_exception(py, &e);
    return 1;
}

/* Whether audit hooks let sys.excepthook be called: a RuntimeError of theirs forbids it, and any
 * other exception is shown before. */
static int hook_is_allowed(const struct pyrt_api *py, struct pyobj *hook,
                           const struct exception *of)
{
    struct pyobj *trace = of->traceback ? of->traceback : py->none;
    struct exception e;

    if (py->PySys_Audit("sys.excepthook", "OOOO", hook, of->type, of->value, trace) == 0)
        return 1;
    if (py->PyErr_ExceptionMatches(*py->runtime_error)) {
        py->PyErr_Clear();
        return 0;
    }
    fetch_exception(py, &e);
    py->PySys_WriteStderr("Exception ignored in audit hook:\n");
    display(py, &e);
    drop_exception(py, &e);
    return 1;
}

static int show_exception(const struct pyrt_api *py, struct exception *e, int index)
{
    struct pyobj *hook = py->PySys_GetObject("excepthook"), *result;
    struct pyobj *trace = e->traceback ? e->traceback : py->none;
    int stock = hook && hook == py->PySys_GetObject("__excepthook__"), status = 1;
    void *state;

    if (stock) {
        state = py->PyEval_SaveThread();
        pthread_mutex_lock(&printing);
        py->PyEval_RestoreThread(state);
    }
    py->PySys_WriteStderr("context %d:\n", index);
    if (!hook) {
        py->PySys_WriteStderr("sys.excepthook is missing\n");
        display(py, e);
    } else {
        py->Py_IncRef(hook);
        if (hook_is_allowed(py, hook, e)) {
            result = py->PyObject_CallFunction(hook, "OOO", e->type, e->value, trace);
            if (!result)
                status = hook_failed(py, e);
            py->Py_DecRef(result);
        }
        py->Py_DecRef(hook);
    }
    flush_stream(py, "stderr");
    if (stock)
        pthread_mutex_unlock(&printing);
    return status;
}

int pyrt_uncaught(const struct pyrt_api *py, int index)
{
    int leaving = py->PyErr_ExceptionMatches(*py->system_exit);
    int interrupted = py->PyErr_ExceptionMatches(*py->keyboard_interrupt);
    struct exception e;
    int status;

    fetch_exception(py, &e);
    flush_stream(py, "stdout");
    /* Without memory some functions fail and do not say why. */
    if (!e.type) {
        py->PySys_WriteStderr("context %d: a call into CPython failed without an exception\n",
                              index);
        return 1;
    }
    if (leaving)
        return exit_status(py, &e);
    set_last_exception(py, &e);
    status = show_exception(py, &e, index);
    drop_exception(py, &e);
    return interrupted ? -SIGINT : status;
}
