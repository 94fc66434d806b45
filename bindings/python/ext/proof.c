#include "bindings/python/ext/proof.h"

#include <stdlib.h>

#include "bindings/python/ext/report.h"

struct findings {
    struct pkg_report leaks, captured;
};

static int add_finding(void *user, const struct exti_error *finding)
{
    struct findings *f = user;

    return pkg_report_add(finding->code == EXTI_E_CAPTURED ? &f->captured : &f->leaks, finding);
}

static int prove_entered(const struct pkg_entry *e, struct findings *found,
                         struct exti_proof *proof, struct exti_error *err)
{
    int rc = extipy_enter(e->ctx, err);

    if (rc < 0)
        return rc;
    rc = exti_ctx_prove(extipy_loader(e->ctx), add_finding, found, proof, err);
    extipy_leave(e->ctx, NULL);
    return rc;
}

static int prove(const struct pkg_entry *e, struct findings *found, struct exti_proof *proof,
                 struct exti_error *err)
{
    PyThreadState *state;
    int rc, kept, kept_captured;

    if (pkg_report_begin(&found->leaks) < 0)
        return EXTI_E_NOMEM;
    if (pkg_report_begin(&found->captured) < 0) {
        pkg_report_end(&found->leaks);
        return EXTI_E_NOMEM;
    }
    state = PyEval_SaveThread();
    rc = prove_entered(e, found, proof, err);
    PyEval_RestoreThread(state);
    kept = pkg_report_end(&found->leaks);
    kept_captured = pkg_report_end(&found->captured);
    return rc < 0 ? rc : kept < 0 ? kept : kept_captured;
}

static PyObject *prove_entry(const struct pkg_entry *e)
{
    struct exti_error err = {.message = "out of memory"};
    struct exti_proof proof = {.size = sizeof proof};
    struct findings found = {0};
    PyObject *result;
    int rc;

    if (!e->ctx)
        return pkg_state_raise(EXTIPY_E_PLACE, "the main interpreter is not a copy");
    rc = prove(e, &found, &proof, &err);
    if (rc < 0)
        result = pkg_state_raise(rc, err.message);
    else
        result = Py_BuildValue("(nnss)", (Py_ssize_t)proof.modules, (Py_ssize_t)proof.references,
                               found.leaks.text, found.captured.text);
    free(found.leaks.text);
    free(found.captured.text);
    return result;
}

PyObject *pkg_proof_prove(PyObject *module, PyObject *args)
{
    struct pkg_entry *e = pkg_state_acquire(args);
    PyObject *result;

    (void)module;
    if (!e)
        return NULL;
    result = prove_entry(e);
    pkg_state.core->release(e);
    return result;
}
