#include "loader/load/patch_slots.h"

#include "loader/load/slot_writer.h"
#include "loader/track/redirects.h"

static void *replacement_of(const struct exti_module *m, const char *symbol)
{
    struct exti_ctx *ctx = m->ctx;
    void *to = exti__redirect_find(ctx->redirects, ctx->redirect_count, symbol);

    if (!to)
        to = exti__redirect_find(m->redirects, m->redirect_count, symbol);
    return to || !ctx->replacement ? to : ctx->replacement(ctx, symbol);
}

static int patch_reference(void *user, const struct exti_reference *ref)
{
    struct exti_slot_writer *w = user;
    void *to;

    if (ref->defined_here || ref->kind != EXTI_REF_ADDRESS || ref->addend)
        return 0;
    to = replacement_of(w->m, ref->name);
    if (!to || exti__slot_value(ref) == (uintptr_t)to)
        return 0;
    return !exti__slot_write(w, ref->slot, (uintptr_t)to);
}

int exti__patch_references(struct exti_module *m, struct exti_error *err)
{
    const struct exti_ctx *ctx = m->ctx;
    struct exti_slot_writer w = {.m = m};
    /* What it does not define leads elsewhere. */
    struct exti_passed own = {.to = {{m->layout.lo, m->layout.hi}}};
    struct exti_error e = {0};
    int rc, write_rc;

    if (!ctx->redirect_count && !m->redirect_count && !ctx->replacement)
        return 0;
    rc = exti__loaded_references(&m->lib, &own, patch_reference, &w, &e);
    write_rc = exti__slots_end(&w, "cannot redirect its calls", rc ? NULL : &e);
    if ((rc || write_rc) && err)
        *err = e;
    return rc ? rc : write_rc;
}

int exti__write_slots(const struct exti_module *m, const struct exti_slot *slots, size_t count,
                      struct exti_error *err)
{
    struct exti_slot_writer w = {.m = m};

    for (size_t i = 0; i < count && !w.code; i++)
        exti__slot_write(&w, slots[i].at, slots[i].value);
    return exti__slots_end(&w, "cannot bind its references to the context's copies", err);
}
