/* Drives a real CPython in a loaded module. */
#include "tests/wine/src/host.h"

#include <stdlib.h>

/* Data and functions alike. */
#define FIND(type, name) type name = (type)(void *)find(c, c->word[1], #name)

typedef void (*set_path_fn)(const wchar_t *path);
typedef void (*start_fn)(int signals);
typedef int (*query_fn)(void);
typedef void *(*save_fn)(void);
typedef int (*run_fn)(const char *code, void *flags);
typedef void (*release_fn)(int state);

/* Releases the interpreter, so that any thread can enter it. */
void python(struct command *c)
{
    FIND(set_path_fn, Py_SetPath);
    FIND(start_fn, Py_InitializeEx);
    FIND(query_fn, Py_IsInitialized);
    FIND(save_fn, PyEval_SaveThread);
    static wchar_t path[4096];

    if (!Py_SetPath || !Py_InitializeEx || !Py_IsInitialized || !PyEval_SaveThread)
        return;
    windows_path(c->word[2], path, sizeof path / sizeof *path);
    Py_SetPath(path);
    Py_InitializeEx(0);
    report(c, "%s %s\n", c->word[1], Py_IsInitialized() ? "started" : "not started");
    PyEval_SaveThread();
}

void python_exec(struct command *c)
{
    FIND(query_fn, PyGILState_Ensure);
    FIND(release_fn, PyGILState_Release);
    FIND(run_fn, PyRun_SimpleStringFlags);
    int state;

    if (!PyGILState_Ensure || !PyGILState_Release || !PyRun_SimpleStringFlags)
        return;
    state = PyGILState_Ensure();
    if (PyRun_SimpleStringFlags(c->word[2], NULL) != 0)
        report(c, "%s raised\n", c->word[1]);
    PyGILState_Release(state);
}

void python_stop(struct command *c)
{
    FIND(query_fn, PyGILState_Ensure);
    FIND(query_fn, Py_FinalizeEx);

    if (!PyGILState_Ensure || !Py_FinalizeEx)
        return;
    PyGILState_Ensure();
    report(c, "%s %s\n", c->word[1], Py_FinalizeEx() ? "not stopped" : "stopped");
}
