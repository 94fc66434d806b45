/* A copy that opens a file gets what the system's loader would give its original; but the context's
 * copy if that is a file of which the context has copies. */
#define _GNU_SOURCE /* RTLD_NOLOAD, RTLD_NODELETE */
#include "loader/interpose/copy_dlopen.h"

#include <string.h>

#include "base/error.h"
#include "base/format.h"
#include "base/mem.h"
#include "base/os/fs_id.h"
#include "base/path.h"
#include "loader/load/initialise.h"
#include "loader/load/load.h"
#include "loader/load/opening.h"
#include "loader/load/shared_calls.h"
#include "loader/load/unload.h"
#include "loader/process/dl.h"
#include "loader/process/guarded_dl.h"
#include "loader/resolve/absent.h"
#include "loader/store/store_graph.h"
#include "loader/store/store_queries.h"
#include "loader/track/address_map.h"

/* Whether `file` means the API library: ctypes.CDLL("libpython3.11.so.1.0"). */
static bool names_api(const struct exti_ctx *ctx, const char *file)
{
    return exti__store_is_api_name(&ctx->store, file) || exti__store_is_api_copy(&ctx->store, file);
}

/* The system's loader reports a file that is not there or that it cannot load.  One that could not
 * be looked at must not be left to it: it may have more luck, and then the process would share the
 * original. */
static int fail_if_unseen(int rc, const struct exti_error *why, struct exti_error *err)
{
    if (!exti__is_unseen(rc, why))
        return 0;
    *err = *why;
    return rc;
}

/* Whether a file uses the context's API, and so must be copied. */
static int find_api_use(const struct exti_ctx *ctx, const char *file, bool *uses,
                        struct exti_error *err)
{
    struct exti_image *im;
    struct exti_error why = {0};
    const struct exti_loaded *api = &ctx->api->lib;
    int rc = exti_inspect(file, &im, &why);

    *uses = false;
    if (rc)
        return fail_if_unseen(rc, &why, err);
    for (size_t i = 0; i < im->info.needed_count && !*uses; i++)
        *uses = names_api(ctx, im->needed[i].name);
    for (size_t i = 0; i < im->info.symbol_count && !*uses; i++)
        *uses = !(im->symbols[i].flags & EXTI_SYM_EXPORT) &&
                (exti__store_private_symbol(&ctx->store, im->symbols[i].name) ||
                 exti__loaded_defines(api, exti__c_name(im->symbols[i].name)));
    exti_image_free(im);
    return 0;
}

/* The handle of a module, for the reference that the caller has taken, or NULL.  RTLD_NODELETE
 * takes one more, which is never given back. */
static void *handle_of(struct exti_module *m, int mode, struct exti_error *err)
{
    if (exti__await_initialised(m, err)) {
        exti__close(m, NULL);
        return NULL;
    }
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
    return handle_of(m, mode, err);
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
static int is_isolated(const struct exti_module *caller, const char *name, const char *path,
                       bool *isolated, struct exti_error *err)
{
    struct exti_ctx *ctx = caller->ctx;
    struct exti_error why = {0};
    int rc;

    *isolated = true;
    if ((!name && caller->handle == ctx->api->handle) ||
        exti__path_is_below(path, exti__ctx_dir(ctx)))
        return 0;
    rc = exti__store_is_isolated(&ctx->store, path, isolated, &why);
    if (!rc && *isolated)
        return 0;
    rc = fail_if_unseen(rc, &why, err);
    return rc ? rc : find_api_use(ctx, path, isolated, err);
}

/* If the process has a library loaded by that name, from wherever, the name means it.  `name` is
 * NULL if the caller gave a path. */
static void *open_shared(const char *name, const char *path, int mode)
{
    void *handle = name ? exti__dlopen(name, mode | RTLD_NOLOAD) : NULL;

    return handle ? handle : exti__dlopen(path, mode);
}

static void *open_file(const struct exti_module *caller, const char *name, const char *path,
                       int mode, struct exti_error *err)
{
    char original[EXTI_PATH_MAX];
    struct exti_module *m;
    bool isolated;

    /* Programs that take paths from the system's list of loaded libraries, as threadpoolctl does,
     * find the copies of all contexts there.  They mean the library, and expect it to be loaded. */
    if (exti__address_map_original(path, original, sizeof original)) {
        path = original;
        mode &= ~RTLD_NOLOAD;
    }
    m = find_loaded_file(caller->ctx, path);
    if (m)
        return handle_of(m, mode, err);
    if (is_isolated(caller, name, path, &isolated, err))
        return NULL;
    if (!isolated)
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
    struct exti_error why = {0};
    void *handle;
    char *path;
    int rc;

    if (m)
        return handle_of(m, mode, err);
    rc = exti__store_find_library(&ctx->store, caller->original, name, &path, &why);
    if (fail_if_unseen(rc, &why, err))
        return NULL;
    if (rc || !path)
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
    struct exti_error why = {0};
    char *path = NULL;
    void *handle;
    int rc;

    if (!relative && exti__path_is_absolute(file))
        return open_file(caller, NULL, file, mode, err);
    rc = relative
             ? exti__store_find_library(&caller->ctx->store, caller->original, file, &path, &why)
             : exti__fs_realpath(file, &path, &why);
    if (fail_if_unseen(rc, &why, err))
        return NULL;
    handle = path ? open_file(caller, NULL, path, mode, err) : exti__dlopen(file, mode);
    exti__free(path);
    return handle;
}

void *exti__copy_dlopen(const struct exti_module *caller, const char *file, int mode,
                        struct exti_error *err)
{
    void *handle;

    /* Global visibility would let one context answer for another. */
    mode &= ~RTLD_GLOBAL;
    if (!file || !*file || names_api(caller->ctx, file))
        return caller->ctx->api->handle;
    handle =
        strchr(file, '/') ? open_path(caller, file, mode, err) : open_name(caller, file, mode, err);
    if (handle && exti__share_calls(caller->ctx, handle, err)) {
        exti__dlclose(handle);
        handle = NULL;
    }
    return handle;
}
