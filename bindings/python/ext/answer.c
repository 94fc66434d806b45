#include "bindings/python/ext/python.h"

#include "bindings/python/ext/answer.h"

#include <stdio.h>

#include "bindings/python/ext/state.h"
#include "bindings/python/ext/target.h"
#include "bindings/python/ext/values.h"

/* Once for each state that threads have here. */
static int adopt_thread(void)
{
    static _Thread_local uint64_t adopted; /* a state's number */
    uint64_t id = PyThreadState_GetID(PyThreadState_Get());
    PyObject *done;

    if (id == adopted)
        return 0;
    done = PyObject_CallObject(pkg_state.adopt_thread, NULL);
    Py_XDECREF(done);
    if (done)
        adopted = id;
    return done ? 0 : -1;
}

static PyObject *call_target(const struct pkg_call *call)
{
    PyObject *function, *args = NULL, *result = NULL;

    if (call->given.length && !(args = pkg_values_read(&call->given)))
        return NULL;
    function = pkg_target_find(call->target, call->hash);
    if (function)
        result = PyObject_CallObject(function, args);
    Py_XDECREF(function);
    Py_XDECREF(args);
    return result;
}

static PyObject *call_dispatcher(const struct pkg_call *call)
{
    PyObject *args = pkg_values_read(&call->given), *result = NULL;

    if (args)
        result = PyObject_CallObject(pkg_state.dispatch, args);
    Py_XDECREF(args);
    return result;
}

/* ---- what is answered ---- */

/* Consumes the tuple, which may be NULL with an exception set. */
static int put_answer(struct pkg_call *call, PyObject *tuple)
{
    int rc = -1;

    pkg_message_clear(&call->answer);
    if (tuple)
        rc = pkg_values_add_own(&call->answer, tuple, call->policy);
    Py_XDECREF(tuple);
    return rc;
}

/* Consumes what the target returned. */
static int put_result(struct pkg_call *call, PyObject *result)
{
    int rc = pkg_values_add(&call->answer, result, call->policy);

    call->direct = rc == 1;
    if (rc == 0)
        rc =
            put_answer(call, PyObject_CallFunction(pkg_state.answered, "Oi", result, call->policy));
    Py_DECREF(result);
    return rc < 0 ? -1 : 0;
}

/* The exception that is set, as an object; its own traceback is what it has. */
static PyObject *take_exception(void)
{
    PyObject *type, *value, *traceback;

    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (value && traceback)
        PyException_SetTraceback(value, traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return value;
}

static PyObject *text_of(PyObject *object, const char *attribute)
{
    PyObject *found = attribute ? PyObject_GetAttrString(object, attribute) : PyObject_Str(object);

    if (found && PyUnicode_Check(found))
        return found;
    Py_XDECREF(found);
    PyErr_Clear();
    return PyUnicode_FromString("?");
}

/* What the package would answer, which itself was interrupted, or is at the limit of recursion. */
static PyObject *bare_failure(PyObject *exception)
{
    PyObject *type = (PyObject *)Py_TYPE(exception), *text;

    PyErr_Clear();
    text = text_of(exception, NULL);
    return Py_BuildValue("(iNNONO)", 1, text_of(type, "__module__"), text_of(type, "__qualname__"),
                         text, text, Py_None);
}

static int put_failure(struct pkg_call *call)
{
    PyObject *exception = take_exception(), *tuple;
    int rc;

    call->direct = 0;
    call->lost = call->unread && PyErr_GivenExceptionMatches(exception, PyExc_KeyboardInterrupt);
    tuple = PyObject_CallFunctionObjArgs(pkg_state.failed, exception, NULL);
    if (!tuple && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt))
        call->lost = 1;
    rc = put_answer(call, tuple ? tuple : bare_failure(exception));
    if (rc < 0)
        rc = put_answer(call, bare_failure(exception));
    /* Its frames would keep what was given. */
    PyException_SetTraceback(exception, Py_None);
    Py_DECREF(exception);
    return rc;
}

int pkg_answer(struct pkg_call *call, struct exti_error *err)
{
    PyObject *result = NULL;
    int rc = adopt_thread();

    call->direct = 0;
    call->lost = 0;
    if (rc == 0)
        result = call->target ? call_target(call) : call_dispatcher(call);
    rc = !result ? -1 : call->target ? put_result(call, result) : put_answer(call, result);
    if (rc < 0)
        rc = put_failure(call);
    if (rc == 0)
        return 0;
    PyErr_Clear();
    *err = (struct exti_error){.code = EXTIPY_E_RAISED, .offset = EXTI_NO_OFFSET};
    snprintf(err->message, sizeof err->message, "the interpreter could not answer");
    return EXTIPY_E_RAISED;
}

int pkg_answer_in_main(struct pkg_call *call, struct exti_error *err)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    int rc = pkg_answer(call, err);

    if (call->lost) /* it was meant for the program, and nothing here can take it any more */
        PyErr_SetInterrupt();
    PyGILState_Release(gil);
    return rc;
}
