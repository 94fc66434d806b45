/* A Mach-O reference names its library, and the edits have made that the context's copy: nothing
 * can capture it. */
#include "loader/load/reference_target.h"

int exti__ref_target_find(struct exti_ref_targets *o, const struct exti_reference *ref,
                          struct exti_ref_target **out, struct exti_error *err)
{
    (void)o;
    (void)ref;
    (void)err;
    *out = NULL;
    return 0;
}

int exti__ref_target_counterpart(const struct exti_ref_target *w, const struct exti_loaded *lib,
                                 const struct exti_reference *ref, struct exti_ref_cure *out,
                                 struct exti_error *err)
{
    (void)w;
    (void)lib;
    (void)ref;
    (void)err;
    *out = (struct exti_ref_cure){0};
    return 0;
}

int exti__ref_target_meant(struct exti_ref_target *w, const struct exti_ctx *ctx,
                           const struct exti_loaded *lib, const struct exti_reference *ref,
                           struct exti_ref_meant *out, struct exti_error *err)
{
    (void)w;
    (void)ctx;
    (void)lib;
    (void)ref;
    (void)err;
    *out = (struct exti_ref_meant){0};
    return 0;
}

void *exti__ref_target_variable(struct exti_ref_targets *o, const struct exti_loaded *lib,
                                const char *name, void *variable)
{
    (void)o;
    (void)lib;
    (void)name;
    return variable;
}

void exti__ref_targets_free(struct exti_ref_targets *o)
{
    (void)o;
}
