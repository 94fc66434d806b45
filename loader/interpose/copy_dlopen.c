/* What a copy gets for a file that it opens as it runs: what the system's loader would give its original,
 * as a copy of the context's where that is one of those it has copies of. */
#define _GNU_SOURCE /* RTLD_NOLOAD, RTLD_NODELETE */
#include <dlfcn.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/os/path.h"
#include "loader/process/dl.h"
#include "loader/store/manifest_api.h"
#include "loader/store/store_graph.h"
#include "loader/track/module.h"

/* Whether `file` is the API library by another name: ctypes.CDLL("libpython3.11.so.1.0"). */
static bool names_api(const struct exti_ctx *ctx, const char *file)
{
    const struct exti_manifest *m = &ctx->store.manifest;

    return exti__manifest_is_api(m, file) || strcmp(exti__base_name(file), m->api.copy) == 0;
}

/* Whether a file uses the context's API, and so must be a copy.  A file that cannot be read is left to
 * the system's loader to complain about. */
static bool uses_api(const struct exti_ctx *ctx, const char *file)
{
    struct exti_image *im;
    const struct exti_loaded *api = &ctx->api->lib;
    bool uses = false;

    if (exti_inspect(file, &im, NULL))
        return false;
    for (size_t i = 0; i < im->info.needed_count && !uses; i++)
        uses = names_api(ctx, im->needed[i].name);
    for (size_t i = 0; i < im->info.symbol_count && !uses; i++)
        uses = !(im->symbols[i].flags & EXTI_SYM_EXPORT) &&
               (exti__private_symbol_find(&ctx->store.renames, im->symbols[i].name) ||
                exti__loaded_defines(api, exti__c_name(im->symbols[i].name)));
    exti_image_free(im);
    return uses;
}

/* The handle of a module that a reference was taken to for it.  What nobody may unload keeps one more, which
 * none gives back. */
static void *handle_of(struct exti_module *m, int mode)
{
    pthread_mutex_lock(&m->ctx->lock);
    if ((mode & RTLD_NODELETE) && !m->stays) {
        m->stays = true;
        m->refs++;
    }
    pthread_mutex_unlock(&m->ctx->lock);
    return m->handle;
}

static void *load_copy(struct exti_ctx *ctx, const char *file, int mode, struct exti_error *err)
{
    struct exti_module *m;

    if (exti_load(ctx, file, &m, err))
        return NULL;
    dlerror(); /* of what was looked for on the way and not found */
    return handle_of(m, mode);
}

/* ---- what is loaded already ---- */

/* The source of the `nth` copy that goes by the name: its SONAME, or a name that something needs it by.
 * The store is locked. */
static const char *named_source(const struct exti_manifest *m, const char *name, size_t nth)
{
    for (size_t i = 0; i < m->count; i++) {
        const struct exti_entry *e = &m->entries[i];

        if (e->source_name && strcmp(e->source_name, name) == 0 && !nth--)
            return e->source;
        for (size_t k = 0; k < e->need_count; k++)
            if (e->needs[k].isolated && strcmp(e->needs[k].name, name) == 0 && !nth--)
                return e->needs[k].file;
    }
    return NULL;
}

/* As the system's loader takes what has been loaded by a name for whatever asks for that, wherever it lies:
 * a library that is shipped with one package, for another. */
static struct exti_module *find_named(struct exti_ctx *ctx, const char *name)
{
    struct exti_module *found = NULL;
    const char *source;

    pthread_mutex_lock(&ctx->store.lock);
    for (size_t i = 0; !found && (source = named_source(&ctx->store.manifest, name, i)); i++)
        found = exti__module_find(ctx, source);
    pthread_mutex_unlock(&ctx->store.lock);
    return found;
}

static struct exti_module *find_file(struct exti_ctx *ctx, const char *path)
{
    struct exti_module *found;
    char *real;

    if (exti__fs_realpath(path, &real, NULL))
        return NULL;
    found = exti__module_find(ctx, real);
    exti__free(real);
    return found;
}

/* ---- what is not ---- */

static bool is_in(const char *dir, const char *path)
{
    const size_t n = strlen(dir);

    return strncmp(path, dir, n) == 0 && path[n] == '/';
}

/* What the API library itself opens by its path is an extension module. */
static bool is_isolated(const struct exti_module *caller, const char *name, const char *path)
{
    struct exti_ctx *ctx = caller->ctx;
    bool isolated;

    if ((!name && caller->handle == ctx->api->handle) || is_in(exti_ctx_dir(ctx), path))
        return true;
    if (exti__store_is_isolated(&ctx->store, path, &isolated, NULL))
        isolated = false;
    return isolated || uses_api(ctx, path);
}

/* What is shared may be loaded by the name, from elsewhere: then that is meant, as with any other library of
 * the process.  `name` is NULL where none was given. */
static void *open_shared(const char *name, const char *path, int mode)
{
    void *handle = name ? dlopen(name, mode | RTLD_NOLOAD) : NULL;

    return handle ? handle : dlopen(path, mode);
}

static void *open_file(const struct exti_module *caller, const char *name, const char *path,
                       int mode, struct exti_error *err)
{
    char original[EXTI_PATH_MAX];
    struct exti_module *m;

    /* The system's list of what is loaded tells the paths of all contexts' copies.  Who goes by it, as
     * threadpoolctl does, means the library, and may count on it. */
    if (exti__address_map_original(path, original, sizeof original)) {
        path = original;
        mode &= ~RTLD_NOLOAD;
    }
    m = find_file(caller->ctx, path);
    if (m)
        return handle_of(m, mode);
    if (!is_isolated(caller, name, path))
        return open_shared(name, path, mode);
    if (mode & RTLD_NOLOAD) {
        dlerror();
        return NULL;
    }
    return load_copy(caller->ctx, path, mode, err);
}

/* Where nothing is found the system's loader is asked, which words the failure. */
static void *open_name(const struct exti_module *caller, const char *name, int mode,
                       struct exti_error *err)
{
    struct exti_ctx *ctx = caller->ctx;
    struct exti_module *m = find_named(ctx, name);
    void *handle;
    char *path;

    if (m)
        return handle_of(m, mode);
    if (exti__store_find_library(&ctx->store, caller->original, name, &path, NULL) || !path)
        return exti__dl_open_for(exti__loaded_search_path(&caller->lib), exti_ctx_dir(ctx), name,
                                 mode);
    handle = names_api(ctx, path) ? ctx->api->handle : open_file(caller, name, path, mode, err);
    exti__free(path);
    return handle;
}

/* Whether a path starts from whoever opens it, which is the original: $ORIGIN and its kin in ELF,
 * @loader_path and @rpath in Mach-O. */
static bool is_relative_to_caller(const struct exti_ctx *ctx, const char *file)
{
    return strchr(file, '$') ||
           (file[0] == '@' && ctx->store.manifest.target.format == EXTI_FORMAT_MACHO);
}

static void *open_path(const struct exti_module *caller, const char *file, int mode,
                       struct exti_error *err)
{
    const bool relative = is_relative_to_caller(caller->ctx, file);
    char *path = NULL;
    void *handle;

    if (!relative && exti__path_is_absolute(file))
        return open_file(caller, NULL, file, mode, err);
    if (relative)
        exti__store_find_library(&caller->ctx->store, caller->original, file, &path, NULL);
    else
        exti__fs_realpath(file, &path, NULL);
    handle = path ? open_file(caller, NULL, path, mode, err) : dlopen(file, mode);
    exti__free(path);
    return handle;
}

void *exti__copy_dlopen(const struct exti_module *caller, const char *file, int mode,
                        struct exti_error *err)
{
    /* Global visibility would let one context answer for another. */
    mode &= ~RTLD_GLOBAL;
    if (!file || !*file || names_api(caller->ctx, file))
        return caller->ctx->api->handle;
    return strchr(file, '/') ? open_path(caller, file, mode, err)
                             : open_name(caller, file, mode, err);
}
