#include "runtime/embed/call.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/embed/convert.h"
#include "runtime/embed/exception.h"
#include "runtime/embed/exiting.h"
#include "runtime/embed/options.h"
#include "runtime/fail.h"

/* ---- what is called; inside ---- */

/* Consumes `from`. */
static struct pyobj *get_attributes(const struct extipy_ctx *c, struct pyobj *from, char *names)
{
    struct pyobj *object = from;
    char *next;

    for (char *name = names; object && name; name = next) {
        next = strchr(name, '.');
        if (next)
            *next++ = '\0';
        from = object;
        object = c->py.PyObject_GetAttrString(from, name);
        c->py.Py_DecRef(from);
    }
    return object;
}

static struct pyobj *import_function(const struct extipy_ctx *c, const char *function)
{
    const size_t n = strcspn(function, ":");
    char *module = strdup(function);
    struct pyobj *object;

    if (!module)
        return c->py.PyErr_NoMemory();
    module[n] = '\0';
    object = c->py.PyImport_ImportModule(module);
    if (object)
        object = get_attributes(c, object, module + n + 1);
    free(module);
    return object;
}

static struct pyobj *find_callee(const struct extipy_ctx *c, const struct extipy_call *call)
{
    if (call->function)
        return import_function(c, call->function);
    c->py.Py_IncRef(call->callee->object);
    return call->callee->object;
}

static struct pyobj *make_call(struct extipy_ctx *c, const void *what)
{
    const struct extipy_call *call = what;
    struct pyobj *callee = find_callee(c, call), *given = NULL, *args = NULL, *kwargs = NULL;
    struct pyobj *result = NULL;

    atomic_fetch_add(&c->called, 1);
    if (callee && call->args)
        given = extipy__to_python(c, call->values, call->args);
    if (callee && (given || !call->args))
        args = given ? c->calls.PySequence_Tuple(given) : c->calls.PyTuple_New(0);
    if (args && call->kwargs)
        kwargs = extipy__to_python(c, call->values, call->kwargs);
    if (args && (kwargs || !call->kwargs))
        result = c->calls.PyObject_Call(callee, args, kwargs);
    c->py.Py_DecRef(kwargs);
    c->py.Py_DecRef(args);
    c->py.Py_DecRef(given);
    c->py.Py_DecRef(callee);
    return result;
}

struct pyobj *extipy__call_inside(struct extipy_ctx *c, const struct extipy_call *call, int *ended)
{
    return extipy__exiting_run(c, make_call, call, ended);
}

static int keep_result(struct extipy_values **out, struct extipy_ctx *c, struct pyobj *result,
                       int stay, struct exti_error *err)
{
    struct extipy_values *values;
    struct extipy_object *handle;
    size_t number;
    int rc = extipy_values_new(&values, err);

    if (rc < 0)
        return rc;
    if (stay) {
        handle = extipy__object_new(c, result);
        number = handle ? extipy__values_object(values, handle) : 0;
        if (!number)
            c->py.PyErr_NoMemory();
    } else {
        number = extipy__from_python(c, values, result);
    }
    if (number) {
        *out = values;
        return 0;
    }
    extipy_values_free(values);
    return EXTIPY_E_RAISED;
}

/* ---- the public calls ---- */

static int check_sequence(const struct extipy_call *call, struct exti_error *err)
{
    const struct extipy_node *args = extipy__values_node(call->values, call->args);
    const struct extipy_node *kwargs = extipy__values_node(call->values, call->kwargs), *key;

    if (call->values && call->values->fault)
        return pyrt_fail(err, call->values->fault, "the values are not complete: %s",
                         call->values->fault == EXTI_E_NOMEM
                             ? "out of memory"
                             : "one was added with a wrong argument");
    if (call->args && (!args || (args->kind != EXTIPY_TUPLE && args->kind != EXTIPY_LIST)))
        return pyrt_fail(err, EXTI_E_ARG, "args is not the number of a TUPLE or LIST");
    if (call->kwargs && (!kwargs || kwargs->kind != EXTIPY_DICT))
        return pyrt_fail(err, EXTI_E_ARG, "kwargs is not the number of a DICT");
    for (size_t i = 0; kwargs && i < kwargs->count; i += 2) {
        key = extipy__values_node(call->values, kwargs->items[i]);
        if (key->kind != EXTIPY_STR)
            return pyrt_fail(err, EXTI_E_ARG, "a key of kwargs is not a STR");
    }
    return 0;
}

static int check_call(const struct extipy_ctx *c, const struct extipy_call *call,
                      struct exti_error *err)
{
    const char *colon = call->function ? strchr(call->function, ':') : NULL;

    if (!call->function == !call->callee)
        return pyrt_fail(err, EXTI_E_ARG, "give either function or callee");
    if (call->function && (!colon || colon == call->function || !colon[1]))
        return pyrt_fail(err, EXTI_E_ARG, "%s: is not of the form module:qualname", call->function);
    if (call->callee && call->callee->ctx != c)
        return pyrt_fail(err, EXTI_E_ARG, "callee is an object of another context");
    return check_sequence(call, err);
}

int extipy__call_read(struct extipy_call *out, const struct extipy_ctx *c,
                      const struct extipy_call *given, struct exti_error *err)
{
    struct extipy_call call;
    int rc;

    if (!c || !given)
        return pyrt_fail(err, EXTI_E_ARG, "the context or the call is NULL");
    rc = extipy__options_read(&call, sizeof call, given, err);
    if (rc == 0)
        rc = check_call(c, &call, err);
    if (rc == 0)
        *out = call;
    return rc;
}

/* What those get that were inside when the context ended is no exception of the program's. */
int extipy__call_raised(struct extipy_ctx *c, struct extipy_exception **raised,
                        struct exti_error *err)
{
    if (!extipy__has_exited(c))
        return extipy__exception_take(c, raised, err);
    c->py.PyErr_Clear();
    return extipy__exited(c, err);
}

int extipy__call_keep(struct extipy_ctx *c, int stay, struct pyobj *object,
                      struct extipy_values **result, struct extipy_exception **raised,
                      struct exti_error *err)
{
    int rc = object ? 0 : EXTIPY_E_RAISED;

    if (object && result)
        rc = keep_result(result, c, object, stay, err);
    c->py.Py_DecRef(object);
    return rc == EXTIPY_E_RAISED ? extipy__call_raised(c, raised, err) : rc;
}

int extipy_call(struct extipy_ctx *c, const struct extipy_call *given,
                struct extipy_values **result, struct extipy_exception **raised,
                struct exti_error *err)
{
    struct extipy_call call;
    struct pyobj *object;
    int rc = extipy__call_read(&call, c, given, err), ended;

    if (rc == 0)
        rc = extipy_enter(c, err);
    if (rc != 0)
        return rc;
    object = extipy__call_inside(c, &call, &ended);
    rc = ended ? extipy__exited(c, err)
               : extipy__call_keep(c, call.stay, object, result, raised, err);
    extipy_leave(c, NULL);
    return rc;
}

struct visit {
    int (*function)(void *user, struct exti_error *err);
    void *user;
    struct exti_error *err;
    int rc;
};

static struct pyobj *visit_inside(struct extipy_ctx *c, const void *what)
{
    struct visit *v = *(struct visit *const *)what;

    (void)c;
    v->rc = v->function(v->user, v->err);
    return NULL;
}

int extipy_visit(struct extipy_ctx *c, int (*function)(void *user, struct exti_error *err),
                 void *user, struct exti_error *err)
{
    struct visit v = {function, user, err, 0}, *what = &v;
    int rc, ended;

    if (!function)
        return pyrt_fail(err, EXTI_E_ARG, "the function is NULL");
    rc = extipy_enter(c, err);
    if (rc < 0)
        return rc;
    extipy__exiting_run(c, visit_inside, &what, &ended);
    rc = ended ? extipy__exited(c, err) : v.rc;
    extipy_leave(c, NULL);
    return rc;
}

/* Returns what the source ended with, or NULL with an exception set. */
static struct pyobj *exec_inside(struct extipy_ctx *c, const void *source)
{
    struct pyrt_compiler_flags flags = {PYRT_IGNORE_COOKIE, c->py.build.minor};
    struct pyobj *module = c->py.PyImport_AddModule("__main__"), *globals, *code, *done = NULL;

    if (!module)
        return NULL;
    globals = c->py.PyModule_GetDict(module);
    code = c->py.Py_CompileStringExFlags(source, "<string>", PYRT_FILE_INPUT, &flags, -1);
    if (code)
        done = c->py.PyEval_EvalCode(code, globals, globals);
    c->py.Py_DecRef(code);
    return done;
}

int extipy_exec(struct extipy_ctx *c, const char *source, struct extipy_exception **raised,
                struct exti_error *err)
{
    struct pyobj *done;
    int rc, ended;

    if (!source)
        return pyrt_fail(err, EXTI_E_ARG, "the source is NULL");
    rc = extipy_enter(c, err);
    if (rc < 0)
        return rc;
    atomic_fetch_add(&c->called, 1);
    done = extipy__exiting_run(c, exec_inside, source, &ended);
    rc = ended ? extipy__exited(c, err) : done ? 0 : extipy__call_raised(c, raised, err);
    if (done)
        c->py.Py_DecRef(done);
    extipy_leave(c, NULL);
    return rc;
}
