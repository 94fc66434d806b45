#include "runtime/embed/exception.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/fail.h"

/* A chain may lead back to itself, by __context__ set by hand. */
#define CHAIN_MOST 64

/* ---- texts ---- */

/* Consumes `text`; NULL, with an exception set, becomes "". */
static char *copy_text(const struct extipy_ctx *c, struct pyobj *text)
{
    struct pyobj *bytes = NULL;
    char *at, *copy = NULL;
    ptrdiff_t length;

    if (text)
        bytes = c->calls.PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
    if (bytes && c->calls.PyBytes_AsStringAndSize(bytes, &at, &length) == 0) {
        copy = malloc((size_t)length + 1);
        if (copy)
            memcpy(copy, at, (size_t)length + 1);
    } else {
        c->py.PyErr_Clear();
        copy = strdup("");
    }
    c->py.Py_DecRef(bytes);
    c->py.Py_DecRef(text);
    return copy;
}

static char *type_name(const struct extipy_ctx *c, struct pyobj *exception)
{
    struct pyobj *type = c->calls.PyObject_Type(exception);
    char *module = copy_text(c, c->py.PyObject_GetAttrString(type, "__module__"));
    char *name = copy_text(c, c->py.PyObject_GetAttrString(type, "__qualname__"));
    size_t prefix = module && *module && strcmp(module, "builtins") != 0 ? strlen(module) + 1 : 0;
    char *whole = module && name ? malloc(prefix + strlen(name) + 1) : NULL;

    if (whole) {
        if (prefix) {
            memcpy(whole, module, prefix - 1);
            whole[prefix - 1] = '.';
        }
        memcpy(whole + prefix, name, strlen(name) + 1);
    }
    free(module);
    free(name);
    c->py.Py_DecRef(type);
    return whole;
}

/* What Python would print.  NULL: an exception is set. */
static struct pyobj *format_traceback(const struct extipy_ctx *c, struct pyobj *exception)
{
    const struct pyrt_api *py = &c->py;
    struct pyobj *module, *lines = NULL, *empty, *text = NULL, *trace = NULL, *type;

    module = py->PyImport_ImportModule("traceback");
    type = c->calls.PyObject_Type(exception);
    if (module)
        trace = py->PyObject_GetAttrString(exception, "__traceback__");
    if (trace)
        lines = py->PyObject_CallMethod(module, "format_exception", "OOO", type, exception, trace);
    empty = c->calls.PyUnicode_Decode("", 0, "utf-8", NULL);
    if (lines && empty)
        text = py->PyObject_CallMethod(empty, "join", "O", lines);
    py->Py_DecRef(empty);
    py->Py_DecRef(lines);
    py->Py_DecRef(trace);
    py->Py_DecRef(type);
    py->Py_DecRef(module);
    return text;
}

/* ---- the struct ---- */

void extipy_exception_free(struct extipy_exception *e)
{
    if (!e)
        return;
    extipy_exception_free(e->cause);
    extipy_exception_free(e->context);
    extipy_object_release(e->object);
    free((char *)e->type);
    free((char *)e->message);
    free((char *)e->traceback);
    free(e);
}

static struct extipy_exception *describe(struct extipy_ctx *c, struct pyobj *exception, int *left);

/* Consumes `linked`, which may be NULL. */
static int describe_link(struct extipy_exception **out, struct extipy_ctx *c, struct pyobj *linked,
                         int *left)
{
    int wanted = linked && *left > 0;

    if (wanted)
        *out = describe(c, linked, left);
    c->py.Py_DecRef(linked);
    return wanted && !*out ? -1 : 0;
}

/* NULL: no memory. */
static struct extipy_exception *describe(struct extipy_ctx *c, struct pyobj *exception, int *left)
{
    struct extipy_exception *e = calloc(1, sizeof *e);

    --*left;
    if (!e)
        return NULL;
    e->type = type_name(c, exception);
    e->message = copy_text(c, c->calls.PyObject_Str(exception));
    e->traceback = copy_text(c, format_traceback(c, exception));
    e->object = extipy__object_new(c, exception);
    if (e->type && e->message && e->traceback && e->object &&
        describe_link(&e->cause, c, c->calls.PyException_GetCause(exception), left) == 0 &&
        describe_link(&e->context, c, c->calls.PyException_GetContext(exception), left) == 0)
        return e;
    extipy_exception_free(e);
    return NULL;
}

int extipy__exception_take(struct extipy_ctx *c, struct extipy_exception **raised,
                           struct exti_error *err)
{
    struct pyobj *type = NULL, *value = NULL, *trace = NULL;
    const struct pyrt_api *py = &c->py;
    struct extipy_exception *e = NULL;
    int left = CHAIN_MOST;

    py->PyErr_Fetch(&type, &value, &trace);
    py->PyErr_NormalizeException(&type, &value, &trace);
    if (value && trace)
        py->PyException_SetTraceback(value, trace);
    if (value)
        e = describe(c, value, &left);
    py->Py_DecRef(trace);
    py->Py_DecRef(value);
    py->Py_DecRef(type);
    if (!e)
        return pyrt_fail(err, EXTI_E_NOMEM, "out of memory");
    pyrt_fail(err, EXTIPY_E_RAISED, "%s%s%s", e->type, *e->message ? ": " : "", e->message);
    if (raised)
        *raised = e;
    else
        extipy_exception_free(e);
    return EXTIPY_E_RAISED;
}
