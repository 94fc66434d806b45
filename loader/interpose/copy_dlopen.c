/* A copy that opens a file gets what the system's loader would give its original; but the context's
 * copy if that is a file of which the context has copies. */
#define _GNU_SOURCE /* RTLD_NOLOAD, RTLD_NODELETE */
#include "loader/interpose/copy_dlopen.h"

#include <dlfcn.h>
#include <string.h>

#include "base/error.h"
#include "base/format.h"
#include "base/mem.h"
#include "base/os/fs_id.h"
#include "base/path.h"
#include "loader/load/load.h"
#include "loader/load/opening.h"
#include "loader/process/dl.h"
#include "loader/store/store_graph.h"
#include "loader/store/store_queries.h"
#include "loader/track/address_map.h"

/* Whether `file` means the API library: ctypes.CDLL("libpython3.11.so.1.0"). */
static bool names_api(const struct exti_ctx *ctx, const char *file)
{
    return exti__store_is_api_name(&ctx->store, file) || exti__store_is_api_copy(&ctx->store, file);
}

/* Whether a file uses the context's API, and so must be copied.  The system's loader reports a file
 * that cannot be read. */
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
               (exti__store_private_symbol(&ctx->store, im->symbols[i].name) ||
                exti__loaded_defines(api, exti__c_name(im->symbols[i].name)));
    exti_image_free(im);
    return uses;
}

/* The handle of a module, for the reference that the caller has taken.  RTLD_NODELETE takes one
 * more, which is never given back. */
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

    if (exti__load(ctx, file, &m, err))
        return NULL;
    dlerror(); /* of look-ups that failed on the way */
    return handle_of(m, mode);
}

/* ---- loaded already ---- */

struct named_search {
    struct exti_ctx *ctx;
    struct exti_module *found;
};

static bool find_source(void *user, const char *source)
{
    struct named_search *s = user;

    s->found = exti__module_find(s->ctx, source);
    return s->found != NULL;
}

/* The system's loader takes a library that is loaded by a name for everyone who asks for that name,
 * wherever it is: one package gets the library that another ships. */
static struct exti_module *find_named(struct exti_ctx *ctx, const char *name)
{
    struct named_search s = {.ctx = ctx};

    exti__store_each_named(&ctx->store, name, find_source, &s);
    return s.found;
}

static struct exti_module *find_loaded_file(struct exti_ctx *ctx, const char *path)
{
    struct exti_module *found;
    char *real;

    if (exti__fs_realpath(path, &real, NULL))
        return NULL;
    found = exti__module_find(ctx, real);
    exti__free(real);
    return found;
}

/* ---- not loaded yet ---- */

/* Whether the file at `path`, which the caller opens by `name` or, with NULL, by its path, is the
 * context's to copy.  The API library opens extension modules by their path. */
static bool is_isolated(const struct exti_module *caller, const char *name, const char *path)
{
    struct exti_ctx *ctx = caller->ctx;
    bool isolated;

    if ((!name && caller->handle == ctx->api->handle) ||
        exti__path_is_below(path, exti__ctx_dir(ctx)))
        return true;
    if (exti__store_is_isolated(&ctx->store, path, &isolated, NULL))
        isolated = false;
    return isolated || uses_api(ctx, path);
}

/* If the process has a library loaded by that name, from wherever, the name means it.  `name` is
 * NULL if the caller gave a path. */
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

    /* Programs that take paths from the system's list of loaded libraries, as threadpoolctl does,
     * find the copies of all contexts there.  They mean the library, and expect it to be loaded. */
    if (exti__address_map_original(path, original, sizeof original)) {
        path = original;
        mode &= ~RTLD_NOLOAD;
    }
    m = find_loaded_file(caller->ctx, path);
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

/* If nothing is found, the system's loader is asked for its error. */
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
        return exti__dl_open_for(exti__loaded_search_path(&caller->lib), exti__ctx_dir(ctx), name,
                                 mode);
    handle = names_api(ctx, path) ? ctx->api->handle : open_file(caller, name, path, mode, err);
    exti__free(path);
    return handle;
}

/* Whether a path is relative to the library that opens it: $ORIGIN and the like in ELF,
 * @loader_path and @rpath in Mach-O.  It means the original's folder. */
static bool is_relative_to_caller(const struct exti_ctx *ctx, const char *file)
{
    return strchr(file, '$') ||
           (file[0] == '@' && exti__store_format(&ctx->store) == EXTI_FORMAT_MACHO);
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
