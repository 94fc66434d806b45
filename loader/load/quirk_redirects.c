#include "loader/load/quirk_redirects.h"

#include "base/error.h"
#include "base/mem.h"
#include "loader/process/dl.h"
#include "loader/resolve/quirks.h"
#include "loader/store/store_queries.h"

/* Looks in the API library, then in the module and those that it needs, then in the program, and
 * at last among what this library has for copies. */
static void *find_redirect_target(const struct exti_module *m, const char *name)
{
    const char *private_name = exti__store_private_symbol(&m->ctx->store, name);
    void *p = NULL;

    if (m->ctx->api)
        p = exti__dl_symbol(m->ctx->api->handle, private_name ? private_name : name);
    if (!p)
        p = exti__dl_symbol(m->handle, private_name ? private_name : name);
    if (!p)
        p = exti__dl_global(name);
    return p || !m->ctx->replacement ? p : m->ctx->replacement(m->ctx, name);
}

static int resolve_redirects(struct exti_module *m, const struct exti_quirk_effect *effect,
                             struct exti_error *err)
{
    if (!effect->redirect_count)
        return 0;
    m->redirects = exti__calloc(effect->redirect_count, sizeof *m->redirects);
    if (!m->redirects)
        return exti__fail_nomem(err);
    for (size_t i = 0; i < effect->redirect_count; i++) {
        const struct exti_rename *r = &effect->redirects[i];
        void *to = find_redirect_target(m, r->to);

        if (!to)
            return exti__fail(err, EXTI_E_NOSYM, EXTI_NO_OFFSET,
                              "a quirk redirects %.100s to %.100s, which no library defines",
                              r->from, r->to);
        m->redirects[m->redirect_count++] = (struct exti_redirect){r->from, to};
    }
    return 0;
}

int exti__module_quirk_redirects(struct exti_module *m, struct exti_error *err)
{
    struct exti_quirk_effect effect;
    struct exti_image *im;
    int rc;

    if (!exti__quirks_may_redirect(m->ctx->quirks, m->original))
        return 0;
    rc = exti_inspect(m->original, &im, err);
    if (rc)
        return rc;
    rc = exti__quirks_apply(m->ctx->quirks, m->original, im, &effect, err);
    exti_image_free(im);
    if (rc)
        return rc;
    rc = resolve_redirects(m, &effect, err);
    exti__quirk_effect_free(&effect);
    return rc;
}
