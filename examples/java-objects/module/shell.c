/* What a shell is; types.c has what it can do. */
#include "module.h"

PyTypeObject *shell_type;

int shell_is(PyObject *o)
{
    return Py_TYPE(o) == shell_type;
}

/* A shell refers to nothing, and is not tracked.  But its type is one of those that may be: else
 * Python would not track dicts and tuples that have nothing but shells in them, and nobody would
 * find the circles that go through these. */
void *shell_new(struct entry *entry)
{
    struct shell *shell = PyObject_GC_New(struct shell, shell_type);

    if (shell)
        shell->entry = entry;
    return shell;
}

void shell_ended(void *shell)
{
    ((struct shell *)shell)->entry = NULL;
}

void shell_dealloc(PyObject *o)
{
    PyTypeObject *type = Py_TYPE(o);

    PyObject_GC_Del(o);
    Py_DECREF(type);
}

int shell_traverse(PyObject *o, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(o));
    return 0;
}
