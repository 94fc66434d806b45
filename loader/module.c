/* Loading copies. */
#include "loader/module.h"
#include "loader/install_name.h"

#include <string.h>

#include "loader/base/error.h"
#include "loader/base/mem.h"
#include "loader/dl.h"
#include "loader/edits.h"
#include "loader/guests.h"

static int hook_failed(struct exti_error *err, const char *hook, const char *original)
{
    int rc = exti__fail(err, EXTI_E_HOOK, EXTI_NO_OFFSET, "%s refused it", hook);

    exti__error_file(err, original);
    return rc;
}

/* ---- one module ---- */

int exti__module_dispose(struct exti_module *m, bool keep_mapped, struct exti_error *err)
{
    struct exti_ctx *ctx = m->ctx;
    const struct exti_module *outer;
    int rc = 0;

    if (ctx->hooks.before_close)
        ctx->hooks.before_close(ctx->user, ctx, m);
    exti__registry_remove(m);
    outer = exti__registry_finish(m);
    if (!keep_mapped)
        rc = exti__dl_close(m->handle, err);
    exti__registry_finish(outer);
    exti__free(m);
    return rc;
}

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

/* Makes an opened copy part of its context: known by address, proven, re-pointed. */
static int adopt(struct exti_module *m, struct exti_error *err)
{
    int rc = exti__loaded_from_handle(m->handle, &m->lib, err);

    if (!rc)
        rc = check_identity(m, err);
    if (rc)
        return rc;
    m->layout = exti__loaded_layout(&m->lib);
    rc = exti__registry_add(m, err);
    if (rc)
        return rc;
    /* Copies name the API library, and the loader would give them the twin's. */
    if (!m->ctx->api && exti__registry_has_twin(m))
        rc = exti__fail(err, EXTI_E_BUSY, EXTI_NO_OFFSET,
                        "another context of this process has the name '%s' too",
                        m->ctx->store.manifest.name);
    if (!rc)
        rc = exti__prove_module(m, err);
    if (!rc) {
        /* Two threads may have opened one file at once: one would make its table read-only while the
         * other still writes. */
        pthread_mutex_lock(&m->ctx->lock);
        rc = exti__redirect(m, err);
        pthread_mutex_unlock(&m->ctx->lock);
    }
    if (rc)
        exti__registry_remove(m);
    else
        exti__guests_find_keys(m->ctx, &m->layout);
    return rc;
}

static int open_soname(const char *original, const struct exti_image *im, const char *name,
                       void **handle, struct exti_error *err)
{
    char *origin = exti__strdup(original), *slash = origin ? exti__fs_last_slash(origin) : NULL;

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

/* Opens, each by itself, the libraries that a copy shares with the rest of the process.  Opened as its
 * dependencies they would bind their weak symbols to the copy's first: the first C++ module would
 * capture libstdc++ for its context, and could never be unloaded; and dyld hides none of what it opens as
 * a dependency.  One that does not open alone, as it has its symbols from others, opens with the copy. */
static int open_shared(const struct exti_ctx *ctx, const char *original,
                       const struct exti_image *im, void ***handles, struct exti_error *err)
{
    bool macho = strcmp(im->info.format, "Mach-O") == 0;
    size_t n = 0;
    int rc = 0;

    *handles = exti__calloc(im->info.needed_count + 1, sizeof **handles);
    if (!*handles)
        return exti__fail_nomem(err);
    for (size_t i = 0; i < im->info.needed_count && !rc; i++) {
        const char *name = im->needed[i].name;

        if (exti__edits_is_api(&ctx->store.manifest, name))
            continue;
        rc = macho ? open_install_name(original, im, name, &(*handles)[n], err)
                   : open_soname(original, im, name, &(*handles)[n], err);
        n += (*handles)[n] != NULL;
    }
    return rc;
}

static void close_shared(void **handles)
{
    for (size_t i = 0; handles && handles[i]; i++)
        exti__dl_close(handles[i], NULL);
    exti__free(handles);
}

/* `im` describes the original. */
static int open_copy(struct exti_ctx *ctx, const char *original, const char *copy,
                     const struct exti_image *im, struct exti_module **out, struct exti_error *err)
{
    struct exti_module *m;
    void **shared = NULL;
    int rc;

    if (ctx->hooks.before_load && ctx->hooks.before_load(ctx->user, ctx, original, copy) < 0)
        return hook_failed(err, "before_load", original);
    m = exti__calloc(1, sizeof *m);
    if (!m)
        return exti__fail_nomem(err);
    *m = (struct exti_module){.ctx = ctx, .original = original, .copy = copy, .refs = 1};
    rc = open_shared(ctx, original, im, &shared, err);
    if (!rc)
        rc = exti__dl_open(copy, &m->handle, err);
    close_shared(shared);
    if (!rc) {
        rc = adopt(m, err);
        if (rc)
            exti__dl_close(m->handle, NULL);
    }
    if (rc) {
        exti__error_file(err, original);
        exti__free(m);
        return rc;
    }
    *out = m;
    return 0;
}

/* Takes the module off its context's list when this was its last reference. */
static bool drop_reference(struct exti_module *m)
{
    struct exti_module **link = &m->ctx->modules;
    bool last;

    pthread_mutex_lock(&m->ctx->lock);
    last = --m->refs == 0;
    if (last) {
        while (*link != m)
            link = &(*link)->older;
        *link = m->older;
        if (m == m->ctx->api)
            m->ctx->api = NULL;
    }
    pthread_mutex_unlock(&m->ctx->lock);
    return last;
}

static int after_load(struct exti_module *m, struct exti_error *err)
{
    const char *original = m->original;
    struct exti_ctx *ctx = m->ctx;

    exti__ctx_log(ctx, EXTI_LOG_DEBUG, "loaded %s from %s", original, m->copy);
    if (!ctx->hooks.after_load || ctx->hooks.after_load(ctx->user, ctx, m) >= 0)
        return 0;
    if (drop_reference(m))
        exti__module_dispose(m, false, NULL);
    return hook_failed(err, "after_load", original);
}

static void push_module(struct exti_module *m)
{
    m->older = m->ctx->modules;
    m->ctx->modules = m;
}

/* ---- the API library ---- */

/* api_lock is held. */
static int open_api(struct exti_ctx *ctx, struct exti_error *err)
{
    const char *copy, *source;
    struct exti_module *m;
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
    rc = open_copy(ctx, source, copy, im, &m, err);
    exti_image_free(im);
    if (rc)
        return rc;
    pthread_mutex_lock(&ctx->lock);
    push_module(m);
    pthread_mutex_unlock(&ctx->lock);
    ctx->api = m;
    return 0;
}

int exti_api(struct exti_ctx *ctx, struct exti_module **out, struct exti_error *err)
{
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
        rc = open_api(ctx, err);
        opened = !rc;
    }
    api = ctx->api;
    pthread_mutex_unlock(&ctx->api_lock);
    if (opened)
        rc = after_load(api, err);
    if (!rc)
        *out = api;
    return rc;
}

/* ---- other modules ---- */

/* Another reference to a module of the context that is loaded already, or NULL. */
static struct exti_module *find_module(struct exti_ctx *ctx, const char *source)
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

/* Adds a freshly opened module, unless another thread was first: then that one is meant. */
static struct exti_module *add_module(struct exti_module *m)
{
    struct exti_ctx *ctx = m->ctx;
    struct exti_module *first;

    pthread_mutex_lock(&ctx->lock);
    for (first = ctx->modules; first && first->copy != m->copy; first = first->older)
        ;
    if (first)
        first->refs++;
    else
        push_module(m);
    pthread_mutex_unlock(&ctx->lock);
    return first ? first : m;
}

/* Whether some symbol that the file defines for itself would be captured by a global one. */
static bool needs_symbolic(const struct exti_image *im)
{
    for (size_t i = 0; i < im->info.symbol_count; i++)
        if ((im->symbols[i].flags & EXTI_SYM_EXPORT) && exti__dl_global(im->symbols[i].name))
            return true;
    return false;
}

/* Opens the copy of `source`, which `im` describes, and makes it a module of the context. */
static int load_copy(struct exti_ctx *ctx, const char *source, const char *copy,
                     const struct exti_image *im, struct exti_module **out, struct exti_error *err)
{
    struct exti_module *m, *first;
    int rc = open_copy(ctx, source, copy, im, &m, err);

    if (rc)
        return rc;
    first = add_module(m);
    if (first != m) {
        exti__registry_remove(m);
        exti__dl_close(m->handle, NULL);
        exti__free(m);
        *out = first;
        return 0;
    }
    rc = after_load(m, err);
    if (!rc)
        *out = m;
    return rc;
}

static int load_new(struct exti_ctx *ctx, const char *original, struct exti_module **out,
                    struct exti_error *err)
{
    const char *copy, *source;
    struct exti_image *im;
    struct exti_module *m;
    int rc = exti_inspect(original, &im, err);

    if (rc)
        return rc;
    rc = exti__store_copy(&ctx->store, original, needs_symbolic(im), &copy, &source, err);
    if (!rc && strcmp(original, source) != 0) {
        /* By another name, or a copy of it: whose needed libraries are not the source's. */
        exti_image_free(im);
        im = NULL;
        rc = exti_inspect(source, &im, err);
    }
    if (!rc) {
        m = find_module(ctx, source);
        if (m)
            *out = m;
        else
            rc = load_copy(ctx, source, copy, im, out, err);
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
    if (!m)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "the module is NULL");
    if (m == m->ctx->api)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET,
                          "the API library is closed with its context");
    return drop_reference(m) ? exti__module_dispose(m, false, err) : 0;
}

int exti_symbol(struct exti_module *m, const char *name, void **out, struct exti_error *err)
{
    const char *private_name;
    void *p = NULL;
    int rc;

    if (!m || !name || !*name || !out)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "the module, name or out is empty");
    private_name = exti__rename_find(&m->ctx->store.renames, name);
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
