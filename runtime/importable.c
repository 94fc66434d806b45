#define _GNU_SOURCE /* asprintf */
#include "runtime/importable.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/fail.h"
#include "runtime/module.h"
#include "runtime/pyapi.h"

/* A child may be another interpreter than its parent, one that has the package.  Its folder comes
 * later on sys.path, as those of PYTHONPATH come first. */
static const char source[] =
    "\"\"\"In a process that a context of extisolate has started: there is one context.\"\"\"\n"
    "\n"
    "import sys\n"
    "from importlib.machinery import PathFinder\n"
    "from importlib.util import module_from_spec\n"
    "from os.path import dirname\n"
    "\n"
    "index, count, name = 0, 1, 'main'\n"
    "\n"
    "_folder, _spec = dirname(__file__), None\n"
    "if _folder in sys.path:\n"
    "    _spec = PathFinder.find_spec('" PYRT_MODULE_NAME
    "', sys.path[sys.path.index(_folder) + 1:])\n"
    "if _spec is not None and _spec.loader is not None:\n"
    "    sys.modules[__name__] = _package = module_from_spec(_spec)\n"
    "    _spec.loader.exec_module(_package)\n";

/* ---- the file ---- */

static int write_all(int fd, const char *text, size_t n)
{
    while (n > 0) {
        ssize_t written = write(fd, text, n);

        if (written < 0 && errno != EINTR)
            return errno;
        if (written > 0) {
            text += written;
            n -= (size_t)written;
        }
    }
    return 0;
}

static int write_file(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644), error;

    if (fd < 0)
        return errno;
    error = write_all(fd, source, sizeof source - 1);
    if (close(fd) != 0 && !error)
        error = errno;
    return error;
}

static int fill_folder(const char *folder, struct exti_error *err)
{
    char *path = NULL;
    int error;

    if (mkdir(folder, 0755) != 0)
        return pyrt_fail_os(err, errno, folder, "cannot create the directory");
    if (asprintf(&path, "%s/" PYRT_MODULE_NAME ".py", folder) < 0)
        return pyrt_fail(err, EXTI_E_NOMEM, "out of memory");
    error = write_file(path);
    free(path);
    return error ? pyrt_fail_os(err, error, folder, "cannot write a file in it") : 0;
}

int pyrt_importable_write(char **folder, const char *base, struct exti_error *err)
{
    char *path = NULL;
    int rc;

    if (asprintf(&path, "%s/python", base) < 0)
        return pyrt_fail(err, EXTI_E_NOMEM, "out of memory");
    rc = fill_folder(path, err);
    if (rc < 0)
        free(path);
    else
        *folder = path;
    return rc;
}

/* ---- in the context ---- */

/* 0 too if what runs at the start has taken apart what is used here: that is no reason not to go
 * on.  -1: ^C, and the exception is set. */
static int pass_over(const struct pyrt_api *py)
{
    if (py->PyErr_ExceptionMatches(*py->keyboard_interrupt))
        return -1;
    py->PyErr_Clear();
    return 0;
}

/* 1, 0, or -1 with an exception set. */
static int is_installed(const struct pyrt_api *py)
{
    struct pyobj *module = py->PyImport_ImportModule("_frozen_importlib_external"), *finder = NULL;
    struct pyobj *spec = NULL;
    int found;

    if (module)
        finder = py->PyObject_GetAttrString(module, "PathFinder");
    if (finder)
        spec = py->PyObject_CallMethod(finder, "find_spec", "s", PYRT_MODULE_NAME);
    found = spec ? spec != py->none : -1;
    py->Py_DecRef(spec);
    py->Py_DecRef(finder);
    py->Py_DecRef(module);
    return found;
}

/* Sets PYTHONPATH in os.environ to what it is, and the folder.  -1 with an exception set. */
static int lengthen_path(const struct pyrt_api *py, struct pyobj *variables, const char *folder)
{
    struct pyobj *old = py->PyObject_CallMethod(variables, "get", "ss", "PYTHONPATH", "");
    struct pyobj *length = old ? py->PyObject_CallMethod(old, "__len__", NULL) : NULL;
    struct pyobj *more = NULL, *path = NULL, *done = NULL;
    char *text = NULL;

    /* An empty entry would be the current folder. */
    if (length && asprintf(&text, ":%s", folder) > 0)
        more = py->PyUnicode_DecodeFSDefault(py->PyLong_AsLong(length) > 0 ? text : text + 1);
    if (more)
        path = py->PyObject_CallMethod(old, "__add__", "O", more);
    if (path)
        done = py->PyObject_CallMethod(variables, "__setitem__", "sO", "PYTHONPATH", path);
    free(text);
    py->Py_DecRef(path);
    py->Py_DecRef(more);
    py->Py_DecRef(length);
    py->Py_DecRef(old);
    py->Py_DecRef(done);
    return done ? 0 : -1;
}

static int offer_by_environment(const struct pyrt_api *py, const char *folder)
{
    struct pyobj *os = py->PyImport_ImportModule("os"), *variables = NULL;
    int rc = -1;

    if (os)
        variables = py->PyObject_GetAttrString(os, "environ");
    if (variables)
        rc = lengthen_path(py, variables, folder);
    py->Py_DecRef(variables);
    py->Py_DecRef(os);
    return rc;
}

/* multiprocessing gives this to its children, in the place of theirs. */
static int offer_by_path(const struct pyrt_api *py, const char *folder)
{
    struct pyobj *path = py->PySys_GetObject("path"), *entry = NULL;
    int rc = -1;

    if (path)
        entry = py->PyUnicode_DecodeFSDefault(folder);
    if (entry)
        rc = py->PyList_Append(path, entry);
    py->Py_DecRef(entry);
    return rc;
}

int pyrt_importable_offer(const struct pyrt_api *py, const char *folder)
{
    int installed;

    if (!folder)
        return 0;
    installed = is_installed(py);
    if (installed < 0 && pass_over(py) < 0)
        return -1;
    if (installed > 0)
        return 0;
    if (offer_by_environment(py, folder) < 0 && pass_over(py) < 0)
        return -1;
    return offer_by_path(py, folder) < 0 ? pass_over(py) : 0;
}
