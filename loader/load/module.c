/* Loading copies. */
#include "loader/track/module.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "loader/process/dl.h"
#include "loader/track/lingering.h"
#include "loader/store/store_copy.h"
#include "loader/store/store_interposed.h"

int exti__hook_failed(struct exti_error *err, const char *hook, const char *original)
{
    int rc = exti__fail(err, EXTI_E_HOOK, EXTI_NO_OFFSET, "%s refused it", hook);

    exti__error_file(err, original);
    return rc;
}

/* ---- one module ---- */

static bool bundle(const struct exti_module *list, struct exti_unload_batch *b)
{
    const char **copies;
    size_t n = 0;
    bool ok;

    for (const struct exti_module *m = list; m; m = m->older)
        n++;
    copies = n > 1 ? exti__calloc(n, sizeof *copies) : NULL;
    if (!copies)
        return false;
    n = 0;
    for (const struct exti_module *m = list; m; m = m->older)
        copies[n++] = m->copy;
    ok = exti__unload_batch_open(b, copies, n);
    exti__free(copies);
    return ok;
}

static int unload(const struct exti_module *list, struct exti_error *err)
{
    const struct exti_module *outer = exti__address_map_unloading(list);
    struct exti_unload_batch b;
    bool together = bundle(list, &b);
    int rc = 0;

    for (const struct exti_module *m = list; m; m = m->older) {
        int close_rc = exti__dl_close(m->handle, rc ? NULL : err);

        rc = rc ? rc : close_rc;
    }
    if (together)
        exti__unload_batch_close(&b);
    exti__address_map_unloading(outer);
    return rc;
}

int exti__modules_unload(struct exti_module *list, bool keep_mapped, struct exti_error *err)
{
    int rc = keep_mapped ? 0 : unload(list, err);

    exti__lingering_sweep();
    while (list) {
        struct exti_module *m = list;

        list = m->older;
        exti__free(m->needed);
        exti__free(m->redirects);
        exti__free(m);
    }
    return rc;
}

int exti__modules_dispose(struct exti_module *list, bool keep_mapped, struct exti_error *err)
{
    for (struct exti_module *m = list; m; m = m->older) {
        if (m->ctx->hooks.before_close)
            m->ctx->hooks.before_close(m->ctx->user, m->ctx, m);
        exti__address_map_remove(m);
    }
    return exti__modules_unload(list, keep_mapped, err);
}

/* Takes the module off its context's list when this was its last reference, and puts it at `end`.  The
 * context's lock is held. */
static struct exti_module **drop_reference(struct exti_module *m, struct exti_module **end)
{
    struct exti_module **link = &m->ctx->modules;

    if (--m->refs)
        return end;
    while (*link != m)
        link = &(*link)->older;
    *link = m->older;
    m->older = NULL;
    if (m == m->ctx->api)
        m->ctx->api = NULL;
    *end = m;
    return &m->older;
}

/* What loses its last user comes to the list behind that one. */
struct exti_module **exti__module_release(struct exti_module *m, struct exti_module **end)
{
    struct exti_ctx *ctx = m->ctx;
    struct exti_module **at = end;

    pthread_mutex_lock(&ctx->lock);
    for (end = drop_reference(m, end); *at; at = &(*at)->older)
        for (size_t i = (*at)->needed_count; i--;)
            end = drop_reference((*at)->needed[i], end);
    pthread_mutex_unlock(&ctx->lock);
    return end;
}

/* Tells the hooks of what is new, then ends the opening; *out keeps a reference to the module that it was
 * for. */
static int announce(struct exti_ctx *ctx, struct exti_opening *o, struct exti_module **out,
                    struct exti_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < o->ordered && !rc; i++) {
        struct exti_module *m = o->places[o->order[i]].m;

        if (!o->places[o->order[i]].fresh)
            continue;
        exti__ctx_log(ctx, EXTI_LOG_DEBUG, "loaded %s from %s", m->original, m->copy);
        if (ctx->hooks.after_load && ctx->hooks.after_load(ctx->user, ctx, m) < 0)
            rc = exti__hook_failed(err, "after_load", m->original);
    }
    if (!rc) {
        *out = o->places[0].m;
        o->places[0].m = NULL;
    }
    exti__opening_end(o);
    return rc;
}

/* ---- the API library ---- */

/* api_lock is held. */
static int open_api(struct exti_ctx *ctx, struct exti_opening *o, struct exti_error *err)
{
    const char *copy, *source;
    struct exti_image *im;
    int rc = exti__store_api(&ctx->store, &copy, &source, err);

    if (rc)
        return rc;
    if (exti__dl_is_open(copy)) {
        rc = exti__fail(err, EXTI_E_BUSY, EXTI_NO_OFFSET,
                        "is loaded in this process already; give each context a directory of its "
                        "own");
        exti__error_file(err, copy);
        return rc;
    }
    rc = exti_inspect(source, &im, err);
    if (rc)
        return rc;
    rc = exti__open_with_dependencies(ctx, source, im, o, err);
    exti_image_free(im);
    if (!rc)
        ctx->api = o->places[0].m;
    return rc;
}

int exti_api(struct exti_ctx *ctx, struct exti_module **out, struct exti_error *err)
{
    struct exti_opening o;
    struct exti_module *api;
    bool opened = false;
    int rc = 0;

    if (!ctx || !out)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "the context or out is NULL");
    if (ctx->flags & EXTI_CTX_COPY_ONLY)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET,
                          "the context was opened with EXTI_CTX_COPY_ONLY; nothing can be loaded");
    pthread_mutex_lock(&ctx->api_lock);
    if (!ctx->api) {
        rc = open_api(ctx, &o, err);
        opened = !rc;
    }
    api = ctx->api;
    pthread_mutex_unlock(&ctx->api_lock);
    if (opened)
        rc = announce(ctx, &o, &api, err);
    if (!rc)
        *out = api;
    return rc;
}

/* ---- other modules ---- */

static int load_new(struct exti_ctx *ctx, const char *original, struct exti_module **out,
                    struct exti_error *err)
{
    const char *copy, *source;
    struct exti_opening o;
    struct exti_image *im;
    struct exti_module *m;
    int rc = exti_inspect(original, &im, err);

    if (rc)
        return rc;
    rc = exti__store_copy(&ctx->store, original, exti__store_is_interposed(&ctx->store, im), &copy,
                          &source, err);
    if (!rc && strcmp(original, source) != 0) {
        /* By another name, or a copy of it: whose needed libraries are not the source's. */
        exti_image_free(im);
        im = NULL;
        rc = exti_inspect(source, &im, err);
    }
    if (!rc) {
        m = exti__module_find(ctx, source);
        if (m)
            *out = m;
        else
            rc = exti__open_with_dependencies(ctx, source, im, &o, err);
        if (!m && !rc)
            rc = announce(ctx, &o, out, err);
    }
    exti_image_free(im);
    return rc;
}

int exti_load(struct exti_ctx *ctx, const char *original, struct exti_module **out,
              struct exti_error *err)
{
    struct exti_module *api;
    int rc;

    if (!ctx || !original || !*original || !out)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET,
                          "the context, file name or out is empty");
    rc = exti_api(ctx, &api, err);
    return rc ? rc : load_new(ctx, original, out, err);
}

int exti_close(struct exti_module *m, struct exti_error *err)
{
    struct exti_module *list = NULL;

    if (!m)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "the module is NULL");
    if (m == m->ctx->api)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET,
                          "the API library is closed with its context");
    exti__module_release(m, &list);
    return list ? exti__modules_dispose(list, false, err) : 0;
}

int exti_symbol(struct exti_module *m, const char *name, void **out, struct exti_error *err)
{
    const char *private_name;
    void *p = NULL;
    int rc;

    if (!m || !name || !*name || !out)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "the module, name or out is empty");
    private_name = exti__private_symbol_find(&m->ctx->store.renames, name);
    if (private_name)
        p = exti__dl_symbol(m->handle, private_name);
    if (!p)
        p = exti__dl_symbol(m->handle, name);
    if (p) {
        *out = p;
        return 0;
    }
    rc = exti__fail(err, EXTI_E_NOSYM, EXTI_NO_OFFSET, "no symbol %.200s", name);
    exti__error_file(err, m->original);
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
