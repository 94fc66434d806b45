#include "bindings/python/ext/target.h"

#include <stdlib.h>
#include <string.h>

#include "bindings/python/ext/state.h"

/* The parts of names that were asked for lately, by the last bits of their hashes.  The functions
 * are looked up each time, for they may have been replaced. */
static struct parts {
    char *name;
    PyObject *module, *path; /* a str, and a tuple of them */
    PyObject *imported;      /* the module of that name when it was last imported, or NULL */
    PyObject *names;         /* its dict, if that has the first name of the path; borrowed */
} known[256];

/* ---- what is kept ---- */

/* The places of a tuple of _kept.py, Entry. */
enum { PLACES, TARGET, ATTRIBUTES, NAMES, VALUES, ABSENT, GLOBALS };

static int has_attribute(PyObject *object, PyObject *name, PyObject *want)
{
    PyObject *found = PyObject_GetAttr(object, name);

    if (!found)
        PyErr_Clear();
    Py_XDECREF(found);
    /* `want` is alive, so that nothing else has its address. */
    return found == want && !(PyDict_Check(want) && PyDict_Size(want));
}

int pkg_target_unchanged(PyObject *entry)
{
    PyObject *attributes = PyTuple_GetItem(entry, ATTRIBUTES);
    PyObject *names = PyTuple_GetItem(entry, NAMES), *values = PyTuple_GetItem(entry, VALUES);
    PyObject *absent = PyTuple_GetItem(entry, ABSENT), *globals = PyTuple_GetItem(entry, GLOBALS);
    int same = 1;

    for (Py_ssize_t i = 0; same && i < PyTuple_Size(attributes); i += 3)
        same = has_attribute(PyTuple_GetItem(attributes, i), PyTuple_GetItem(attributes, i + 1),
                             PyTuple_GetItem(attributes, i + 2));
    for (Py_ssize_t i = 0; same && i < PyTuple_Size(names); i++)
        same = PyDict_GetItemWithError(globals, PyTuple_GetItem(names, i)) ==
               PyTuple_GetItem(values, i);
    for (Py_ssize_t i = 0; same && i < PyTuple_Size(absent); i++)
        same = !PyDict_GetItemWithError(globals, PyTuple_GetItem(absent, i));
    return same;
}

static int is_kept_by(PyObject *entry, unsigned long long id)
{
    PyObject *number = PyLong_FromUnsignedLongLong(id);
    int kept = number ? PySet_Contains(PyTuple_GetItem(entry, PLACES), number) : 0;

    Py_XDECREF(number);
    PyErr_Clear();
    return kept == 1;
}

/* Borrowed. */
static PyObject *kept_name(PyObject *function, unsigned long long id)
{
    PyObject *entry = PyDict_GetItemWithError(pkg_state.kept, function);

    if (!entry || entry == Py_None || !is_kept_by(entry, id) || !pkg_target_unchanged(entry))
        return NULL;
    return PyTuple_GetItem(entry, TARGET);
}

PyObject *pkg_target_of(PyObject *function, unsigned long long id)
{
    PyObject *name = NULL;

    if (Py_TYPE(function) != Py_TYPE(pkg_state.dispatch)) /* others' __hash__ may do anything */
        return NULL;
    name = PyDict_GetItemWithError(pkg_state.targets, function);
    if (!name)
        name = kept_name(function, id);
    Py_XINCREF(name);
    return name;
}

/* ---- finding ---- */

static PyObject *split(const char *path)
{
    PyObject *text = PyUnicode_FromString(path);
    PyObject *names = text ? PyObject_CallMethod(text, "split", "s", ".") : NULL;
    PyObject *tuple = names ? PyList_AsTuple(names) : NULL, *name;

    /* Names of attributes are found sooner. */
    for (Py_ssize_t i = 0; tuple && i < PyTuple_Size(tuple); i++) {
        name = PyTuple_GetItem(tuple, i);
        Py_INCREF(name);
        PyUnicode_InternInPlace(&name);
        PyTuple_SetItem(tuple, i, name);
    }
    Py_XDECREF(names);
    Py_XDECREF(text);
    return tuple;
}

/* Returns 0, or -1 with an exception. */
static int learn(struct parts *p, const char *name)
{
    const char *colon = strchr(name, ':');
    PyObject *module = PyUnicode_DecodeUTF8(name, colon - name, "surrogatepass");
    PyObject *path = split(colon + 1);
    struct parts old = *p;
    char *copy = strdup(name);

    if (!module || !path || !copy) {
        Py_XDECREF(module);
        Py_XDECREF(path);
        free(copy);
        if (!PyErr_Occurred())
            PyErr_NoMemory();
        return -1;
    }
    PyUnicode_InternInPlace(&module);
    *p = (struct parts){copy, module, path, NULL, NULL};
    free(old.name);
    Py_XDECREF(old.module);
    Py_XDECREF(old.path);
    Py_XDECREF(old.imported);
    return 0;
}

/* The module as it is now, if it is one that was found before: it has been imported to its end. */
static PyObject *found_before(const struct parts *p)
{
    PyObject *modules = PyImport_GetModuleDict(); /* borrowed, as what is in it */

    if (!p->imported || !PyDict_CheckExact(modules) ||
        PyDict_GetItemWithError(modules, p->module) != p->imported)
        return NULL;
    Py_INCREF(p->imported);
    return p->imported;
}

/* Waits for a thread that is importing it. */
static PyObject *import(PyObject *module)
{
    PyObject *found = PyImport_GetModule(module);

    return found || PyErr_Occurred() ? found : PyImport_Import(module);
}

/* The dict in which the attribute of a module is looked up, as long as the module is a plain one:
 * what its type has comes first.  Borrowed. */
static PyObject *names_for(PyObject *module, PyObject *path)
{
    if (PyTuple_Size(path) == 0 ||
        PyObject_HasAttr((PyObject *)&PyModule_Type, PyTuple_GetItem(path, 0)))
        return NULL;
    return PyModule_GetDict(module);
}

static PyObject *find_module(struct parts *p)
{
    PyObject *found = found_before(p), *module = p->module, *old;

    if (found)
        return found;
    Py_INCREF(module); /* the import may use these parts for another name */
    found = import(module);
    if (found && p->module == module) {
        old = p->imported;
        Py_INCREF(found);
        p->imported = found;
        p->names = PyModule_CheckExact(found) ? names_for(found, p->path) : NULL;
        Py_XDECREF(old);
    }
    Py_DECREF(module);
    return found;
}

/* What the path leads to from the module.  Consumes `from`. */
static PyObject *follow(PyObject *from, PyObject *path, PyObject *names)
{
    const Py_ssize_t n = PyTuple_Size(path);
    PyObject *found = NULL;
    Py_ssize_t i = 0;

    if (names && PyModule_CheckExact(from))
        found = PyDict_GetItemWithError(names, PyTuple_GetItem(path, 0));
    if (found) {
        Py_INCREF(found);
        Py_DECREF(from);
        from = found;
        i = 1;
    }
    for (; from && i < n; i++) {
        found = PyObject_GetAttr(from, PyTuple_GetItem(path, i));
        Py_DECREF(from);
        from = found;
    }
    return from;
}

PyObject *pkg_target_find(const char *name, size_t hash)
{
    struct parts *p = &known[hash % (sizeof known / sizeof *known)];
    PyObject *found, *path;

    if ((!p->name || strcmp(p->name, name) != 0) && learn(p, name) < 0)
        return NULL;
    path = p->path;
    Py_INCREF(path);
    found = find_module(p);
    if (found)
        found = follow(found, path, p->path == path && p->imported == found ? p->names : NULL);
    Py_DECREF(path);
    return found;
}
