#include "runtime/embed/source.h"

/* Before 3.10 code has no builtins but those that its namespace names. */
static struct pyobj *new_namespace(const struct pyrt_api *py)
{
    struct pyobj *builtins = py->PyImport_AddModule("builtins"), *names = NULL;

    if (builtins)
        names = py->PyObject_CallMethod(builtins, "dict", NULL);
    if (names && py->PyDict_SetItemString(names, "__builtins__", builtins) == 0)
        return names;
    py->Py_DecRef(names);
    return NULL;
}

struct pyobj *extipy__source_run(const struct pyrt_api *py, const char *source)
{
    struct pyrt_compiler_flags flags = {PYRT_IGNORE_COOKIE, py->build.minor};
    struct pyobj *names = new_namespace(py), *code = NULL, *done = NULL;

    if (names)
        code = py->Py_CompileStringExFlags(source, "<extisolate>", PYRT_FILE_INPUT, &flags, -1);
    if (code)
        done = py->PyEval_EvalCode(code, names, names);
    if (!done) {
        py->Py_DecRef(names);
        names = NULL;
    }
    py->Py_DecRef(done);
    py->Py_DecRef(code);
    return names;
}
