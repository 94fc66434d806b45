/* A real CPython, found in a module that is loaded. */
#include "tests/wine/src/host.h"

#include <stdlib.h>

void python(struct command *c)
{
    void (*set_path)(const wchar_t *) =
        (void (*)(const wchar_t *))(void *)find(c, c->word[1], "Py_SetPath");
    void (*start)(int) = (void (*)(int))(void *)find(c, c->word[1], "Py_InitializeEx");
    int (*started)(void) = (int (*)(void))(void *)find(c, c->word[1], "Py_IsInitialized");
    static wchar_t path[4096];

    if (!set_path || !start || !started)
        return;
    windows_path(c->word[2], path, sizeof path / sizeof *path);
    set_path(path);
    start(0);
    report(c, "%s %s\n", c->word[1], started() ? "started" : "not started");
}

void python_exec(struct command *c)
{
    int (*run)(const char *, void *) =
        (int (*)(const char *, void *))(void *)find(c, c->word[1], "PyRun_SimpleStringFlags");

    if (run && run(c->word[2], NULL) != 0)
        report(c, "%s raised\n", c->word[1]);
}
