#include "loader/load/opening.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/path.h"
#include "loader/load/interposed.h"
#include "loader/load/patch_slots.h"
#include "loader/load/prove.h"
#include "loader/load/quirk_redirects.h"
#include "loader/load/shared_libraries.h"
#include "loader/load/static_tls.h"
#include "loader/load/unload.h"
#include "loader/process/dl.h"
#include "loader/track/address_map.h"
#include "loader/track/context_keys.h"

static int hook_failed(struct exti_error *err, const char *hook, const char *original)
{
    int rc = exti__fail(err, EXTI_E_HOOK, EXTI_NO_OFFSET, "the %s hook refused it", hook);

    exti__error_file(err, original);
    return rc;
}

/* ---- adoption ---- */

/* The loader identifies libraries by SONAME, so it would give us the copy of a context of the same
 * name in another directory. */
static int check_is_own_copy(const struct exti_module *m, struct exti_error *err)
{
    char path[EXTI_PATH_MAX];
    int rc;

    if (exti__loaded_is_file(&m->lib, m->copy))
        return 0;
    exti__loaded_path(&m->lib, path, sizeof path);
    rc = exti__fail(err, EXTI_E_BUSY, EXTI_NO_OFFSET,
                    "the loader gave %s instead: another context of this process has the name '%s' "
                    "too; give each its own name",
                    path, exti__ctx_name(m->ctx));
    exti__error_file(err, m->copy);
    return rc;
}

/* Adds an opened copy to the address map. */
static int enrol(struct exti_module *m, struct exti_error *err)
{
    int rc = exti__loaded_from_handle(m->handle, &m->lib, err);

    if (!rc)
        rc = check_is_own_copy(m, err);
    if (rc)
        return rc;
    m->layout = exti__loaded_layout(&m->lib);
    rc = exti__address_map_add(m, err);
    if (rc)
        return rc;
    m->enrolled = true;
    /* The loader would give this context's copies the other context's API library: they name it. */
    if (!m->ctx->api && exti__address_map_has_namesake(m))
        return exti__fail(err, EXTI_E_BUSY, EXTI_NO_OFFSET,
                          "another context of this process has the name '%s' too; give each its "
                          "own name",
                          exti__ctx_name(m->ctx));
    return 0;
}

/* Proves the copy's references and re-points those that are to lead elsewhere. */
static int adopt_copy(struct exti_module *m, const struct exti_loaded *api, struct exti_error *err)
{
    int rc = exti__prove_module(m, api, err);

    if (!rc)
        rc = exti__module_quirk_redirects(m, err);
    if (rc)
        return rc;
    /* Two threads may have opened one file at once: one would make its table read-only while the
     * other still writes. */
    pthread_mutex_lock(&m->ctx->lock);
    rc = exti__patch_references(m, err);
    pthread_mutex_unlock(&m->ctx->lock);
    if (!rc)
        exti__ctx_keys_find(m->ctx, &m->layout);
    return rc;
}

/* ---- one opening ---- */

struct exti_module *exti__module_find(struct exti_ctx *ctx, const char *source)
{
    struct exti_module *m;

    pthread_mutex_lock(&ctx->lock);
    for (m = ctx->modules; m && strcmp(m->original, source) != 0; m = m->older)
        ;
    if (m)
        m->refs++;
    pthread_mutex_unlock(&ctx->lock);
    return m;
}

/* Unloads modules that never came to the context's list. */
static void discard_modules(struct exti_module *list)
{
    for (struct exti_module *m = list; m; m = m->older)
        if (m->enrolled)
            exti__address_map_remove(m);
    exti__modules_unload(list, false, NULL);
}

static int open_copy(struct exti_ctx *ctx, const struct exti_dependency *d,
                     struct exti_module **out, struct exti_error *err)
{
    struct exti_module *m = exti__calloc(1, sizeof *m);
    int rc;

    if (!m)
        return exti__fail_nomem(err);
    *m = (struct exti_module){.ctx = ctx, .original = d->source, .copy = d->copy, .refs = 1};
    m->needed = exti__calloc(d->need_count + 1, sizeof *m->needed);
    rc = m->needed ? exti__dl_open(d->copy, &m->handle, err) : exti__fail_nomem(err);
    if (rc) {
        exti__static_tls_advise(d->copy, err);
        exti__error_file(err, d->source);
        exti__free(m->needed);
        exti__free(m);
        return rc;
    }
    *out = m;
    return 0;
}

/* Orders the copies so that each comes after those that it needs, circles aside: a depth-first
 * walk, without recursion. */
static void put_in_order(struct exti_opening *o, size_t *path)
{
    size_t depth = 0;

    path[depth++] = 0;
    o->places[0].visited = true;
    while (depth) {
        const size_t at = path[depth - 1];
        const struct exti_dependency *d = &o->set.copies[at];
        size_t *next = &o->places[at].next;

        if (*next == d->need_count) {
            o->order[o->ordered++] = at;
            depth--;
        } else if (!o->places[d->needs[(*next)++]].visited) {
            path[depth++] = d->needs[*next - 1];
            o->places[path[depth - 1]].visited = true;
        }
    }
}

/* Finds out what the opening consists of, and which of it is loaded already. */
static int prepare_opening(struct exti_ctx *ctx, const char *source, struct exti_opening *o,
                           struct exti_error *err)
{
    size_t *path;
    int rc = exti__store_dependencies(&ctx->store, source, &o->set, err);

    if (rc)
        return rc;
    o->places = exti__calloc(o->set.count, sizeof *o->places);
    o->order = exti__calloc(o->set.count, sizeof *o->order);
    path = exti__calloc(o->set.count, sizeof *path);
    if (o->places && o->order && path)
        put_in_order(o, path);
    else
        rc = exti__fail_nomem(err);
    exti__free(path);
    for (size_t i = 0; i < o->ordered; i++)
        o->places[i].m = exti__module_find(ctx, o->set.copies[i].source);
    /* The first copy was looked at when it was made. */
    for (size_t i = 1; i < o->set.count && !rc; i++)
        if (!o->places[i].m && !o->set.copies[i].symbolic)
            rc = exti__interposed_make_symbolic(ctx, o->set.copies[i].source, err);
    return rc;
}

static int ask_before_load(struct exti_ctx *ctx, const struct exti_opening *o,
                           struct exti_error *err)
{
    for (size_t i = 0; i < o->ordered; i++) {
        const struct exti_dependency *d = &o->set.copies[o->order[i]];

        if (!o->places[o->order[i]].m &&
            ctx->hooks.before_load(ctx->user, ctx, d->source, d->copy) < 0)
            return hook_failed(err, "before_load", d->source);
    }
    return 0;
}

/* dyld hides what dlopen opens, but not what it opens as a dependency.  So there each copy is
 * opened before those that need it; if that fails because it expects symbols from them, it is
 * opened with them. */
#ifdef __APPLE__
#define NEEDS_FIRST true
#else
#define NEEDS_FIRST false
#endif

/* A copy that the first one loads without need not open. */
static int open_place(struct exti_ctx *ctx, struct exti_opening *o, size_t at,
                      struct exti_error *err)
{
    const struct exti_dependency *d = &o->set.copies[at];
    struct exti_place *s = &o->places[at];
    struct exti_error why = {0};
    int rc;

    if (s->m)
        return 0;
    rc = open_copy(ctx, d, &s->m, &why);
    s->fresh = !rc;
    if (rc == EXTI_E_LOAD && d->optional) {
        exti__ctx_log(ctx, EXTI_LOG_DEBUG, "skipped %s, which is optional: %s", d->source,
                      why.message);
        return 0;
    }
    if (rc && err)
        *err = why;
    return rc;
}

/* Opening the first copy makes the system's loader open all; the others only need a handle each. */
static int open_copies(struct exti_ctx *ctx, struct exti_opening *o, struct exti_error *err)
{
    const struct exti_loaded *api;
    int rc = 0;

    for (size_t i = 0; i < o->ordered && NEEDS_FIRST; i++)
        open_place(ctx, o, o->order[i], NULL);
    for (size_t i = 0; i < o->set.count && !rc; i++)
        rc = open_place(ctx, o, i, err);
    for (size_t i = 0; i < o->set.count && !rc; i++)
        if (o->places[i].fresh && (rc = enrol(o->places[i].m, err)))
            exti__error_file(err, o->set.copies[i].source);
    if (rc)
        return rc;
    api = ctx->api ? &ctx->api->lib : &o->places[0].m->lib;
    for (size_t i = 0; i < o->set.count && !rc; i++)
        if (o->places[i].fresh && (rc = adopt_copy(o->places[i].m, api, err)))
            exti__error_file(err, o->set.copies[i].source);
    return rc;
}

/* Puts a new module on the context's list, or takes the one that another thread has put there
 * first. */
static void publish_module(struct exti_ctx *ctx, struct exti_place *s)
{
    struct exti_module *m = s->m, *first;

    pthread_mutex_lock(&ctx->lock);
    for (first = ctx->modules; first && first->copy != m->copy; first = first->older)
        ;
    if (first) {
        first->refs++;
    } else {
        m->older = ctx->modules;
        ctx->modules = m;
    }
    pthread_mutex_unlock(&ctx->lock);
    if (first) {
        discard_modules(m);
        s->m = first;
        s->fresh = false;
    }
}

/* Gives a new module its references to those that it needs. */
static void link_needs(struct exti_ctx *ctx, struct exti_opening *o, size_t at)
{
    const struct exti_dependency *d = &o->set.copies[at];
    struct exti_module *m = o->places[at].m;

    pthread_mutex_lock(&ctx->lock);
    for (size_t i = 0; i < d->need_count; i++) {
        struct exti_module *needed = o->places[d->needs[i]].m;

        if (!needed)
            continue;
        needed->refs++;
        m->needed[m->needed_count++] = needed;
    }
    pthread_mutex_unlock(&ctx->lock);
}

/* Closes the copies that have not been published. */
static void undo_opening(struct exti_opening *o)
{
    struct exti_module *list = NULL;

    for (size_t i = o->places ? o->set.count : 0; i--;) {
        if (!o->places[i].fresh)
            continue;
        o->places[i].m->older = list;
        list = o->places[i].m;
        o->places[i].m = NULL;
    }
    if (list)
        discard_modules(list);
}

/* Gives back the references that the opening has left, and frees it. */
static void end_opening(struct exti_opening *o)
{
    struct exti_module *list = NULL, **end = &list;

    for (size_t i = 0; i < o->set.count && o->places; i++)
        if (o->places[i].m)
            end = exti__module_release(o->places[i].m, end);
    if (list)
        exti__modules_dispose(list, false, NULL);
    exti__free(o->places);
    exti__free(o->order);
    exti__dependencies_free(&o->set);
    *o = (struct exti_opening){0};
}

int exti__open_with_dependencies(struct exti_ctx *ctx, const char *source,
                                 const struct exti_image *im, struct exti_opening *o,
                                 struct exti_error *err)
{
    void **shared = NULL;
    int rc;

    *o = (struct exti_opening){0};
    rc = prepare_opening(ctx, source, o, err);
    if (!rc && ctx->hooks.before_load)
        rc = ask_before_load(ctx, o, err);
    if (!rc)
        rc = exti__shared_open(ctx, source, im, &o->set, &shared, err);
    if (!rc)
        rc = open_copies(ctx, o, err);
    exti__shared_close(shared);
    if (rc) {
        undo_opening(o);
        end_opening(o);
        return rc;
    }
    for (size_t i = 0; i < o->ordered; i++)
        if (o->places[o->order[i]].fresh)
            publish_module(ctx, &o->places[o->order[i]]);
    for (size_t i = 0; i < o->set.count; i++)
        if (o->places[i].fresh)
            link_needs(ctx, o, i);
    return 0;
}

int exti__opening_announce(struct exti_ctx *ctx, struct exti_opening *o, struct exti_module **out,
                           struct exti_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < o->ordered && !rc; i++) {
        struct exti_module *m = o->places[o->order[i]].m;

        if (!o->places[o->order[i]].fresh)
            continue;
        exti__ctx_log(ctx, EXTI_LOG_DEBUG, "loaded %s from %s", m->original, m->copy);
        if (ctx->hooks.after_load && ctx->hooks.after_load(ctx->user, ctx, m) < 0)
            rc = hook_failed(err, "after_load", m->original);
    }
    if (!rc) {
        *out = o->places[0].m;
        o->places[0].m = NULL;
    }
    end_opening(o);
    return rc;
}
