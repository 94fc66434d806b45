/* On Windows the references that the context's options name are bound to what they name.  The
 * loader's own entry points stay: there is no global scope to search, and a library that loads
 * another names it by its path. */
#include <string.h>
#include <windows.h>

#include "base/os/win32.h"
#include "loader/track/module.h"

struct binder {
    const struct exti_module *m;
    DWORD code;
};

static void *target_of(const struct exti_module *m, const char *symbol)
{
    const struct exti_ctx *ctx = m->ctx;

    for (size_t i = 0; i < ctx->redirect_count; i++)
        if (strcmp(ctx->redirects[i].symbol, symbol) == 0)
            return ctx->redirects[i].to;
    for (size_t i = 0; i < m->redirect_count; i++)
        if (strcmp(m->redirects[i].symbol, symbol) == 0)
            return m->redirects[i].to;
    return NULL;
}

/* Most linkers put the slots into a section that the loader makes read-only. */
static DWORD write_slot(uintptr_t *slot, uintptr_t value)
{
    DWORD old;

    if (!VirtualProtect(slot, sizeof *slot, PAGE_READWRITE, &old))
        return GetLastError();
    *slot = value;
    VirtualProtect(slot, sizeof *slot, old, &old);
    return 0;
}

static int bind(void *user, const struct exti_reference *ref)
{
    struct binder *b = user;
    void *to = target_of(b->m, ref->name);

    if (!to || *ref->slot == (uintptr_t)to)
        return 0;
    b->code = write_slot(ref->slot, (uintptr_t)to);
    return b->code != 0;
}

int exti__patch_references(struct exti_module *m, struct exti_error *err)
{
    struct binder b = {.m = m};
    const bool any = m->ctx->redirect_count || m->redirect_count;
    int rc = any ? exti__loaded_references(&m->lib, bind, &b, err) : 0;

    return b.code ? exti__fail_system(err, b.code, m->copy, "cannot re-point its references") : rc;
}

int exti__write_slots(const struct exti_module *m, const struct exti_slot *slots, size_t count,
                      struct exti_error *err)
{
    DWORD code = 0;

    for (size_t i = 0; i < count && !code; i++)
        code = write_slot(slots[i].at, slots[i].value);
    return code ? exti__fail_system(err, code, m->copy, "cannot re-point its references") : 0;
}
