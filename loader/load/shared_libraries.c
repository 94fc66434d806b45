/* Opened as a copy's dependencies, shared libraries would bind their weak symbols to the copy's
 * first: the first C++ module would capture libstdc++ for its context, and could never be unloaded.
 * And dyld hides nothing that it opens as a dependency.  So each is opened alone before the copy.
 * A library that does not open alone, because it expects its symbols from others, is opened with
 * the copy. */
#include "loader/load/shared_libraries.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/path.h"
#include "loader/image/inspect.h"
#include "loader/image/install_name.h"
#include "loader/load/shared_calls.h"
#include "loader/process/dl.h"
#include "loader/process/program.h"
#include "loader/store/store_queries.h"

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

/* dyld expands @loader_path and @rpath for whoever calls dlopen, not for the original. */
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

/* Without a closure nothing says which file a needed name means: looks each up as the loader
 * would. */
static int open_by_name(const struct exti_ctx *ctx, const char *original,
                        const struct exti_image *im, struct exti_shared **list,
                        struct exti_error *err)
{
    bool macho = im->format == EXTI_FORMAT_MACHO;
    size_t n = 0;
    int rc = 0;

    *list = exti__calloc(im->info.needed_count + 1, sizeof **list);
    if (!*list)
        return exti__fail_nomem(err);
    for (size_t i = 0; i < im->info.needed_count && !rc; i++) {
        const char *name = im->needed[i].name;

        if (exti__store_is_api_name(&ctx->store, name))
            continue;
        rc = macho ? open_install_name(original, im, name, &(*list)[n].handle, err)
                   : open_soname(original, im, name, &(*list)[n].handle, err);
        n += (*list)[n].handle != NULL;
    }
    return rc;
}

/* Each opening would make ld.so pass by all libraries that came later. */
static bool is_held_by_api(const struct exti_ctx *ctx, const char *file)
{
    const struct exti_shared *s = ctx->api ? ctx->api->shared : NULL;

    while (s && s->handle && s->file != file)
        s++;
    return s && s->handle;
}

static int open_set(const struct exti_ctx *ctx, const struct exti_dependency_set *set,
                    struct exti_shared **list, struct exti_error *err)
{
    size_t n = 0;

    *list = exti__calloc(set->shared_count + 1, sizeof **list);
    if (!*list)
        return exti__fail_nomem(err);
    for (size_t i = 0; i < set->shared_count; i++) {
        const char *file = set->shared[i];

        if (exti__is_loader(file) || is_held_by_api(ctx, file))
            continue;
        (*list)[n] = (struct exti_shared){exti__dl_open_shared(NULL, "", file), file};
        n += (*list)[n].handle != NULL;
    }
    return 0;
}

int exti__shared_open(struct exti_ctx *ctx, const char *original,
                      const struct exti_dependency_set *set, struct exti_shared **list,
                      struct exti_error *err)
{
    struct exti_image *im;
    int rc;

    if (exti__store_shares_all(&ctx->store)) {
        rc = exti__inspect(original, &im, err);
        if (rc)
            return rc;
        rc = open_by_name(ctx, original, im, list, err);
        exti_image_free(im);
    } else {
        rc = open_set(ctx, set, list, err);
    }
    for (size_t i = 0; !rc && (*list)[i].handle; i++)
        rc = exti__share_calls(ctx, (*list)[i].handle, err);
    return rc;
}

void exti__shared_close(struct exti_shared *list)
{
    for (size_t i = 0; list && list[i].handle; i++)
        exti__dl_close(list[i].handle, NULL);
    exti__free(list);
}
