/* The proof of isolation. */
#ifndef LOADER_LOAD_PROVE_H
#define LOADER_LOAD_PROVE_H

#include "loader/track/module.h"

/* Proves the references of a module that has just entered the address map, as have all copies that
 * it needs, and of the shared libraries that it needs: EXTI_E_INTERPOSED for the first that
 * leaves the context.  Re-points references to originals, which the program may have loaded
 * globally, to the context's copies if these are loaded.  `api` is the API library's copy: while it
 * is being opened, ctx->api is not set. */
int exti__prove_module(struct exti_module *m, const struct exti_module *api,
                       struct exti_error *err);

/* Who hears of findings. */
struct exti_proof_report {
    exti_report_fn each; /* NULL: nobody */
    void *user;
    bool captured; /* of EXTI_E_CAPTURED, too */
};

/* exti_ctx_prove after its argument checks: follows the references of all modules and of the shared
 * libraries that these need, and changes nothing. */
int exti__prove_context(struct exti_ctx *ctx, const struct exti_module *api,
                        const struct exti_proof_report *report, struct exti_proof *out,
                        struct exti_error *err);

#endif
