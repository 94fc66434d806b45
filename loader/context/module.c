/* Modules: loading, symbols, closing, and the proof that they are isolated. */
#include "loader/track/module.h"

#include "base/error.h"
#include "base/opts.h"
#include "loader/load/load.h"
#include "loader/load/prove.h"
#include "loader/load/unload.h"
#include "loader/track/calls.h"

int exti_api(struct exti_ctx *ctx, struct exti_module **out, struct exti_error *err)
{
    struct exti_call call;
    int rc;

    if (!ctx || !out)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "the context or out is NULL");
    rc = exti__call_begin(&call, ctx, err);
    if (rc)
        return rc;
    rc = exti__api(ctx, out, err);
    exti__call_end(&call);
    return rc;
}

int exti_load(struct exti_ctx *ctx, const char *original, struct exti_module **out,
              struct exti_error *err)
{
    struct exti_call call;
    int rc;

    if (!ctx || !original || !*original || !out)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET,
                          "the context, file name or out is NULL or empty");
    rc = exti__call_begin(&call, ctx, err);
    if (rc)
        return rc;
    rc = exti__load(ctx, original, out, err);
    exti__call_end(&call);
    return rc;
}

int exti_close(struct exti_module *m, struct exti_error *err)
{
    struct exti_call call;
    int rc;

    if (!m)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "the module is NULL");
    rc = exti__call_begin(&call, m->ctx, err);
    if (rc)
        return rc;
    rc = exti__close(m, err);
    exti__call_end(&call);
    return rc;
}

int exti_symbol(struct exti_module *m, const char *name, void **out, struct exti_error *err)
{
    struct exti_call call;
    int rc;

    if (!m || !name || !*name || !out)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET,
                          "the module, name or out is NULL or empty");
    rc = exti__call_begin(&call, m->ctx, err);
    if (rc)
        return rc;
    rc = exti__symbol(m, name, out, err);
    exti__call_end(&call);
    return rc;
}

const char *exti_module_original(const struct exti_module *m)
{
    return m->original;
}

const char *exti_module_copy(const struct exti_module *m)
{
    return m->copy;
}

int exti_ctx_prove(struct exti_ctx *ctx, exti_report_fn report, void *user, struct exti_proof *out,
                   struct exti_error *err)
{
    /* Programs that were built for an earlier version know of leaks alone. */
    const struct exti_proof_report to = {
        report, user, out && out->size >= offsetof(struct exti_proof, captured) + sizeof(size_t)};
    struct exti_proof proof;
    struct exti_module *api;
    struct exti_call call;
    int rc;

    if (!ctx)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "the context is NULL");
    rc = exti__call_begin(&call, ctx, err);
    if (rc)
        return rc;
    rc = exti__api(ctx, &api, err);
    if (!rc)
        rc = exti__prove_context(ctx, api, &to, &proof, err);
    exti__call_end(&call);
    if (rc)
        return rc;
    if (out && exti__opts_give(out, &proof, sizeof proof))
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "struct exti_proof.size is not set");
    return 0;
}
