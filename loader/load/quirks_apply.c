/* What quirks do to loaded modules. */
#include "base/error.h"
#include "base/mem.h"
#include "loader/process/dl.h"
#include "loader/resolve/quirks.h"
#include "loader/track/module.h"

/* In the API library, in the module itself and what it needs, or in the program. */
static void *find_target(const struct exti_module *m, const char *name)
{
    const char *private_name = exti__private_symbol_find(&m->ctx->store.renames, name);
    void *p = NULL;

    if (m->ctx->api)
        p = exti__dl_symbol(m->ctx->api->handle, private_name ? private_name : name);
    if (!p)
        p = exti__dl_symbol(m->handle, private_name ? private_name : name);
    return p ? p : exti__dl_global(name);
}

static int find_targets(struct exti_module *m, const struct exti_quirk_effect *effect,
                        struct exti_error *err)
{
    if (!effect->redirect_count)
        return 0;
    m->redirects = exti__calloc(effect->redirect_count, sizeof *m->redirects);
    if (!m->redirects)
        return exti__fail_nomem(err);
    for (size_t i = 0; i < effect->redirect_count; i++) {
        const struct exti_rename *r = &effect->redirects[i];
        void *to = find_target(m, r->to);

        if (!to)
            return exti__fail(err, EXTI_E_NOSYM, EXTI_NO_OFFSET,
                              "a quirk redirects %.100s to %.100s, which is nowhere", r->from,
                              r->to);
        m->redirects[m->redirect_count++] = (struct exti_redirect){r->from, to};
    }
    return 0;
}

int exti__module_quirk_redirects(struct exti_module *m, struct exti_error *err)
{
    struct exti_quirk_effect effect;
    struct exti_image *im;
    int rc;

    if (!exti__quirks_have(m->ctx->quirks, "redirect"))
        return 0;
    rc = exti_inspect(m->original, &im, err);
    if (rc)
        return rc;
    rc = exti__quirks_apply(m->ctx->quirks, m->original, im, &effect, err);
    exti_image_free(im);
    if (rc)
        return rc;
    rc = find_targets(m, &effect, err);
    exti__quirk_effect_free(&effect);
    return rc;
}
