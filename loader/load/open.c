/* Opening copies together with those that they drag in. */
#include "loader/track/module.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "loader/image/install_name.h"
#include "loader/load/interposed.h"
#include "loader/process/dl.h"
#include "loader/store/manifest_api.h"
#include "loader/track/context_threads.h"
#include "loader/store/store_dependencies.h"

/* ---- what is shared ---- */

static int open_soname(const char *original, const struct exti_image *im, const char *name,
                       void **handle, struct exti_error *err)
{
    char *origin = exti__strdup(original), *slash = origin ? exti__path_last_slash(origin) : NULL;

    if (!origin)
        return exti__fail_nomem(err);
    if (slash)
        *slash = 0;
    *handle =
        exti__dl_open_shared(im->info.runpath ? im->info.runpath : im->info.rpath, origin, name);
    exti__free(origin);
    return 0;
}

/* dyld would look up @loader_path and @rpath for us, who call it, not for the original. */
static int open_install_name(const char *original, const struct exti_image *im, const char *name,
                             void **handle, struct exti_error *err)
{
    *handle = NULL;
    for (size_t i = 0; i < exti__install_name_tries(im, name) && !*handle; i++) {
        char *path;
        int rc = exti__install_name_file(original, im, name, i, &path, err);

        if (rc)
            return rc;
        if (path)
            *handle = exti__dl_open_shared(NULL, "", path);
        exti__free(path);
    }
    return 0;
}

/* Those that the file itself names, where nothing says which file each is. */
static int open_named(const struct exti_ctx *ctx, const char *original, const struct exti_image *im,
                      void ***handles, struct exti_error *err)
{
    bool macho = im->format == EXTI_FORMAT_MACHO;
    size_t n = 0;
    int rc = 0;

    *handles = exti__calloc(im->info.needed_count + 1, sizeof **handles);
    if (!*handles)
        return exti__fail_nomem(err);
    for (size_t i = 0; i < im->info.needed_count && !rc; i++) {
        const char *name = im->needed[i].name;

        if (exti__manifest_is_api(&ctx->store.manifest, name))
            continue;
        rc = macho ? open_install_name(original, im, name, &(*handles)[n], err)
                   : open_soname(original, im, name, &(*handles)[n], err);
        n += (*handles)[n] != NULL;
    }
    return rc;
}

/* Opens, each by itself, the libraries that a copy shares with the rest of the process.  Opened as its
 * dependencies they would bind their weak symbols to the copy's first: the first C++ module would
 * capture libstdc++ for its context, and could never be unloaded; and dyld hides none of what it opens as
 * a dependency.  One that does not open alone, as it has its symbols from others, opens with the copy. */
static int open_shared(const struct exti_ctx *ctx, const char *original,
                       const struct exti_image *im, const struct exti_dependency_set *set,
                       void ***handles, struct exti_error *err)
{
    size_t n = 0;

    if (ctx->store.manifest.policy.closure == EXTI_CLOSURE_NONE)
        return open_named(ctx, original, im, handles, err);
    *handles = exti__calloc(set->shared_count + 1, sizeof **handles);
    if (!*handles)
        return exti__fail_nomem(err);
    for (size_t i = 0; i < set->shared_count; i++) {
        (*handles)[n] = exti__dl_open_shared(NULL, "", set->shared[i]);
        n += (*handles)[n] != NULL;
    }
    return 0;
}

static void close_shared(void **handles)
{
    for (size_t i = 0; handles && handles[i]; i++)
        exti__dl_close(handles[i], NULL);
    exti__free(handles);
}

/* ---- adoption ---- */

/* Whether the file the loader gave us is the one we asked for: it answers by name, so a context of
 * the same name in another directory would be taken for this one. */
static int check_identity(const struct exti_module *m, struct exti_error *err)
{
    char path[EXTI_PATH_MAX];
    int rc;

    if (exti__loaded_is_file(&m->lib, m->copy))
        return 0;
    exti__loaded_path(&m->lib, path, sizeof path);
    rc = exti__fail(err, EXTI_E_BUSY, EXTI_NO_OFFSET,
                    "the loader gave %s instead; two contexts of one process cannot share the "
                    "name '%s'",
                    path, m->ctx->store.manifest.name);
    exti__error_file(err, m->copy);
    return rc;
}

/* Makes an opened copy known by its addresses. */
static int enrol(struct exti_module *m, struct exti_error *err)
{
    int rc = exti__loaded_from_handle(m->handle, &m->lib, err);

    if (!rc)
        rc = check_identity(m, err);
    if (rc)
        return rc;
    m->layout = exti__loaded_layout(&m->lib);
    rc = exti__address_map_add(m, err);
    if (rc)
        return rc;
    m->enrolled = true;
    /* Copies name the API library, and the loader would give them the twin's. */
    if (!m->ctx->api && exti__address_map_has_namesake(m))
        return exti__fail(err, EXTI_E_BUSY, EXTI_NO_OFFSET,
                          "another context of this process has the name '%s' too",
                          m->ctx->store.manifest.name);
    return 0;
}

/* Proves its references and re-points those to the loader. */
static int adopt(struct exti_module *m, const struct exti_loaded *api, struct exti_error *err)
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

/* Modules that are not on the context's list. */
static void discard(struct exti_module *list)
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
        exti__error_file(err, d->source);
        exti__free(m->needed);
        exti__free(m);
        return rc;
    }
    *out = m;
    return 0;
}

/* Each copy after what it needs, but for circles: a walk that goes down first, without recursion. */
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

static int prepare(struct exti_ctx *ctx, const char *source, struct exti_opening *o,
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
    return rc ? rc : exti__interposed_make_symbolic(ctx, o, err);
}

static int ask_hook(struct exti_ctx *ctx, const struct exti_opening *o, struct exti_error *err)
{
    for (size_t i = 0; i < o->ordered; i++) {
        const struct exti_dependency *d = &o->set.copies[o->order[i]];

        if (!o->places[o->order[i]].m &&
            ctx->hooks.before_load(ctx->user, ctx, d->source, d->copy) < 0)
            return exti__hook_failed(err, "before_load", d->source);
    }
    return 0;
}

/* dyld hides what is opened by itself, and nothing that it opens for another: so what is needed is opened
 * first there, but for what has its symbols from those that need it. */
#ifdef __APPLE__
#define NEEDS_FIRST true
#else
#define NEEDS_FIRST false
#endif

/* One that the first copy loads without need not open. */
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
        exti__ctx_log(ctx, EXTI_LOG_DEBUG, "does not open, and need not: %s: %s", d->source,
                      why.message);
        return 0;
    }
    if (rc && err)
        *err = why;
    return rc;
}

/* The system's loader opens the first copy and what it needs; the others are only asked for. */
static int open_all(struct exti_ctx *ctx, struct exti_opening *o, struct exti_error *err)
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
        if (o->places[i].fresh && (rc = adopt(o->places[i].m, api, err)))
            exti__error_file(err, o->set.copies[i].source);
    return rc;
}

/* Puts a new module on the context's list, unless another thread was first: then that one is meant. */
static void publish(struct exti_ctx *ctx, struct exti_place *s)
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
        discard(m);
        s->m = first;
        s->fresh = false;
    }
}

/* Users hold references to what they need. */
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

/* What has not come to be published. */
static void undo(struct exti_opening *o)
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
        discard(list);
}

int exti__open_with_dependencies(struct exti_ctx *ctx, const char *source,
                                 const struct exti_image *im, struct exti_opening *o,
                                 struct exti_error *err)
{
    void **shared = NULL;
    int rc;

    *o = (struct exti_opening){0};
    rc = prepare(ctx, source, o, err);
    if (!rc && ctx->hooks.before_load)
        rc = ask_hook(ctx, o, err);
    if (!rc)
        rc = open_shared(ctx, source, im, &o->set, &shared, err);
    if (!rc)
        rc = open_all(ctx, o, err);
    close_shared(shared);
    if (rc) {
        undo(o);
        exti__opening_end(o);
        return rc;
    }
    for (size_t i = 0; i < o->ordered; i++)
        if (o->places[o->order[i]].fresh)
            publish(ctx, &o->places[o->order[i]]);
    for (size_t i = 0; i < o->set.count; i++)
        if (o->places[i].fresh)
            link_needs(ctx, o, i);
    return 0;
}

void exti__opening_end(struct exti_opening *o)
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
