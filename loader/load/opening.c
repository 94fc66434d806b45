#include "loader/load/opening.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/path.h"
#include "loader/load/early_code.h"
#include "loader/load/initialise.h"
#include "loader/load/interposed.h"
#include "loader/load/patch_slots.h"
#include "loader/load/prove.h"
#include "loader/load/quirk_redirects.h"
#include "loader/load/shared_libraries.h"
#include "loader/load/static_tls.h"
#include "loader/load/unload.h"
#include "loader/process/constructors.h"
#include "loader/process/dl.h"
#include "loader/process/fork_guard.h"
#include "loader/process/linkmap_path.h"
#include "loader/process/original_pages.h"
#include "loader/track/address_map.h"
#include "loader/track/lingering.h"

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

/* Another process may have made the copy again, for programs, after it was found fresh.  Then the
 * system's loader has run its constructors, before its references were proven. */
static int check_is_withheld(const struct exti_module *m, struct exti_error *err)
{
    int rc;

    if (!exti__has_unheld_constructors(&m->lib))
        return 0;
    rc = exti__fail(err, EXTI_E_BUSY, EXTI_NO_OFFSET,
                    "another process has made this copy again for programs that load it without "
                    "extisolate; give those a directory of their own");
    exti__error_file(err, m->copy);
    return rc;
}

/* Another context's may be mapped still: it runs in a thread, or something holds a handle. */
static int check_is_fresh(const struct exti_module *m, struct exti_error *err)
{
    int rc;

    if (!exti__lingering_is_others(m->ctx, m->layout.lo, m->copy))
        return 0;
    rc = exti__fail(err, EXTI_E_BUSY, EXTI_NO_OFFSET,
                    "is still mapped from a context of this process that has been closed; give "
                    "each context its own directory");
    exti__error_file(err, m->copy);
    return rc;
}

/* Adds an opened copy to the address map. */
static int enrol(struct exti_module *m, struct exti_error *err)
{
    int rc = exti__loaded_from_handle(m->handle, &m->lib, err);

    if (!rc)
        rc = check_is_own_copy(m, err);
    if (!rc)
        rc = check_is_withheld(m, err);
    if (rc)
        return rc;
    m->layout = exti__loaded_layout(&m->lib);
    rc = check_is_fresh(m, err);
    if (!rc)
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

/* Tables are compared before they are mapped, which a process of few contexts would gain little
 * memory by, and start later. */
#define FEW_CONTEXTS 2

/* Puts the original's pages in the place of those that a lean copy lacks. */
static int map_original(const struct exti_module *m, const struct exti_dependency *d,
                        struct exti_error *err)
{
    int rc;

    if (!d->left_out.count)
        return 0;
    /* Two threads may have opened one file at once: one would read data anew that the code has
     * changed for the other. */
    pthread_mutex_lock(&m->ctx->lock);
    rc = exti__map_original(&m->lib, d->source, &d->id, &d->left_out,
                            exti__ctx_count() > FEW_CONTEXTS, err);
    pthread_mutex_unlock(&m->ctx->lock);
    return rc;
}

/* Proves the copy's references and re-points those that are to lead elsewhere. */
static int adopt_copy(struct exti_module *m, const struct exti_module *api, struct exti_error *err)
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
    return rc;
}

/* dyld hides what dlopen opens, but not what it opens as a dependency.  So there each copy is
 * opened before those that need it; if that fails because it expects symbols from them, it is
 * opened with them. */
#ifdef __APPLE__
#define NEEDS_FIRST true
#else
#define NEEDS_FIRST false
#endif

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

/* Adds `first` and what it leads to, each after those that it needs, circles aside: a depth-first
 * walk, without recursion. */
static void add_in_order(struct exti_opening *o, size_t first, size_t *path)
{
    size_t depth = 0;

    path[depth++] = first;
    o->places[first].visited = true;
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

/* The order of constructors.  dyld runs those of an image after those of all that it needs, in the
 * order of its load commands (Loader::runInitializersBottomUp).  glibc since 2.35
 * (elf/dl-sort-maps.c, _dl_sort_maps_dfs) begins at the last library of the breadth-first list, and
 * what is opened comes last, even if others need it. */
static void put_in_order(struct exti_opening *o, size_t *path)
{
    if (NEEDS_FIRST)
        add_in_order(o, 0, path);
    o->places[0].visited = true;
    for (size_t i = o->set.count; i-- > 1;)
        if (!o->places[i].visited)
            add_in_order(o, i, path);
    if (!NEEDS_FIRST)
        o->order[o->ordered++] = 0;
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
    for (size_t i = 0; i < o->ordered && !rc; i++)
        o->places[i].m = exti__module_find(ctx, o->set.copies[i].source);
    /* The first copy was looked at when it was made. */
    for (size_t i = 1; i < o->set.count && !rc; i++)
        if (!o->places[i].m && !o->set.copies[i].symbolic)
            rc = exti__interposed_make_symbolic(ctx, o->set.copies[i].source, err);
    return rc ? rc : exti__early_code_needs_full(ctx, o, err);
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
static int open_with_code(struct exti_ctx *ctx, struct exti_opening *o, struct exti_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < o->ordered && NEEDS_FIRST; i++)
        open_place(ctx, o, o->order[i], NULL);
    for (size_t i = 0; i < o->set.count && !rc; i++)
        rc = open_place(ctx, o, i, err);
    for (size_t i = 0; i < o->set.count && !rc; i++)
        if (o->places[i].fresh && (rc = enrol(o->places[i].m, err)))
            exti__error_file(err, o->set.copies[i].source);
    for (size_t i = 0; i < o->set.count && !rc; i++)
        if (o->places[i].fresh && (rc = map_original(o->places[i].m, &o->set.copies[i], err)))
            exti__error_file(err, o->set.copies[i].source);
    return rc;
}

static int open_copies(struct exti_ctx *ctx, struct exti_opening *o, struct exti_error *err)
{
    const struct exti_module *api;
    int rc;

    exti__fork_guard_begin_mapping();
    rc = open_with_code(ctx, o, err);
    exti__fork_guard_end_mapping();
    if (rc)
        return rc;
    api = ctx->api ? ctx->api : o->places[0].m;
    for (size_t i = 0; i < o->set.count && !rc; i++)
        if (o->places[i].fresh && (rc = adopt_copy(o->places[i].m, api, err)))
            exti__error_file(err, o->set.copies[i].source);
    return rc;
}

static const struct exti_module *find_published(const struct exti_ctx *ctx, const char *copy)
{
    const struct exti_module *m = ctx->modules;

    while (m && m->copy != copy)
        m = m->older;
    return m;
}

/* Puts a new module on the context's list, or takes the one that another thread has put there
 * first. */
static void publish_module(struct exti_ctx *ctx, struct exti_opening *o, struct exti_place *s)
{
    struct exti_module *m = s->m, *first;

    pthread_mutex_lock(&ctx->lock);
    first = (struct exti_module *)find_published(ctx, m->copy);
    if (first) {
        first->refs++;
    } else {
        m->older = ctx->modules;
        ctx->modules = m;
        exti__initialise_later(o, m);
    }
    pthread_mutex_unlock(&ctx->lock);
    if (first) {
        exti__address_map_remove(m);
        exti__modules_unload(m, false, NULL);
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

static bool is_published(struct exti_ctx *ctx, const struct exti_module *m)
{
    bool is;

    pthread_mutex_lock(&ctx->lock);
    is = find_published(ctx, m->copy) != NULL;
    pthread_mutex_unlock(&ctx->lock);
    return is;
}

/* The module's constructors have not run, so its destructors must not: unless another thread has
 * opened the same file and published it, or the loader gave another file.  False if they cannot be
 * kept from running. */
static bool forget_destructors(struct exti_module *m)
{
    struct exti_loaded lib;
    struct exti_layout layout;

    if (is_published(m->ctx, m))
        return true;
    if (exti__loaded_from_handle(m->handle, &lib, NULL))
        return false;
    if (!exti__loaded_is_file(&lib, m->copy) || exti__constructors_have_run(&lib))
        return true;
    layout = exti__loaded_layout(&lib);
    return exti__destructors_drop(&lib, &layout);
}

/* Unloads modules that never came to the context's list. */
static void discard_modules(struct exti_module *list)
{
    bool keep_mapped = false;

    for (struct exti_module *m = list; m; m = m->older) {
        keep_mapped = !forget_destructors(m) || keep_mapped;
        if (m->enrolled)
            exti__address_map_remove(m);
    }
    exti__modules_unload(list, keep_mapped, NULL);
}

/* Openings of one context map the same files at the same time.  What a failed one has mapped may be
 * what another is about to publish, so it is closed when no opening is going on. */
static void begin_mapping(struct exti_ctx *ctx)
{
    pthread_mutex_lock(&ctx->lock);
    while (ctx->discarding)
        pthread_cond_wait(&ctx->changed, &ctx->lock);
    ctx->openings++;
    pthread_mutex_unlock(&ctx->lock);
}

static void end_mapping(struct exti_ctx *ctx)
{
    struct exti_module *list = NULL;

    pthread_mutex_lock(&ctx->lock);
    if (!--ctx->openings && ctx->failed) {
        list = ctx->failed;
        ctx->failed = NULL;
        ctx->discarding = true;
    }
    pthread_mutex_unlock(&ctx->lock);
    if (!list)
        return;
    discard_modules(list);
    pthread_mutex_lock(&ctx->lock);
    ctx->discarding = false;
    pthread_cond_broadcast(&ctx->changed);
    pthread_mutex_unlock(&ctx->lock);
}

/* Leaves the copies that have not been published to end_mapping. */
static void undo_opening(struct exti_ctx *ctx, struct exti_opening *o)
{
    pthread_mutex_lock(&ctx->lock);
    for (size_t i = o->places ? o->set.count : 0; i--;) {
        struct exti_module *m = o->places[i].m;

        if (!o->places[i].fresh)
            continue;
        m->older = ctx->failed;
        ctx->failed = m;
        o->places[i].m = NULL;
    }
    pthread_mutex_unlock(&ctx->lock);
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
    exti__opening_free(o);
}

/* Maps and proves the opening's copies, and publishes them. */
static int map_copies(struct exti_ctx *ctx, struct exti_opening *o, struct exti_error *err)
{
    int rc;

    exti__lingering_sweep_others(ctx);
    begin_mapping(ctx);
    rc = open_copies(ctx, o, err);
    if (rc)
        undo_opening(ctx, o);
    for (size_t i = 0; i < o->ordered && !rc; i++)
        if (o->places[o->order[i]].fresh)
            publish_module(ctx, o, &o->places[o->order[i]]);
    for (size_t i = 0; i < o->set.count && !rc; i++)
        if (o->places[i].fresh)
            link_needs(ctx, o, i);
    end_mapping(ctx);
    return rc;
}

int exti__open_with_dependencies(struct exti_ctx *ctx, const char *source, struct exti_opening *o,
                                 struct exti_error *err)
{
    struct exti_shared *shared = NULL;
    int rc;

    *o = (struct exti_opening){0};
    rc = prepare_opening(ctx, source, o, err);
    if (!rc && ctx->hooks.before_load)
        rc = ask_before_load(ctx, o, err);
    if (!rc)
        rc = exti__shared_open(ctx, source, &o->set, &shared, err);
    if (!rc)
        rc = map_copies(ctx, o, err);
    if (!rc && o->places[0].fresh)
        o->places[0].m->shared = shared;
    else
        exti__shared_close(shared);
    if (rc)
        end_opening(o);
    return rc;
}

int exti__opening_finish(struct exti_ctx *ctx, struct exti_opening *o, struct exti_module **out,
                         struct exti_error *err)
{
    int rc = exti__initialise(o, err);

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
