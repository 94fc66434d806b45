#include "bindings/python/ext/calls.h"

#include "bindings/python/ext/own.h"
#include "bindings/python/ext/release.h"
#include "bindings/python/ext/stack.h"

static int call_context(const struct pkg_entry *e, struct pkg_call *call, struct exti_error *err)
{
    int rc = extipy_visit(e->ctx, e->answer, call, err);

    if (rc == EXTIPY_E_EXITED)
        call->exit_status = extipy_exit_status(e->ctx);
    return rc;
}

int pkg_calls_send(uint64_t id, struct pkg_call *call, struct exti_error *err)
{
    struct pkg_visit visit;
    int rc = pkg_state.core->begin_visit(&visit, id, err);

    if (rc < 0)
        return rc;
    rc = visit.entry->ctx ? call_context(visit.entry, call, err)
                          : pkg_state.core->call_main(call, err);
    pkg_state.core->end_visit(&visit);
    return rc;
}

int pkg_calls_make(uint64_t id, struct pkg_call *call)
{
    PyThreadState *state;
    struct exti_error err;
    int rc, *begun;

    pkg_message_init(&call->answer);
    call->exit_status = -1;
    if (pkg_stack_is_low()) {
        pkg_message_clear(&call->given);
        PyErr_SetString(PyExc_RecursionError, "calls from interpreter to interpreter are too deep");
        return -1;
    }
    begun = pkg_release_begin();
    state = PyEval_SaveThread();
    rc = pkg_calls_send(id, call, &err);
    PyEval_RestoreThread(state);
    pkg_message_clear(&call->given);
    pkg_release_end(begun);
    pkg_own_settle_rung();
    if (rc == 0)
        return 0;
    pkg_message_clear(&call->answer);
    if (call->exit_status >= 0)
        pkg_state_raise_exited(call->exit_status, err.message);
    else
        pkg_state_raise(rc, err.message);
    return -1;
}
