#include "loader/load/load.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/image.h"
#include "loader/image/file_memo.h"
#include "loader/load/initialise.h"
#include "loader/load/opening.h"
#include "loader/load/unload.h"
#include "loader/process/dl.h"
#include "loader/store/store_copy.h"
#include "loader/store/store_images.h"
#include "loader/store/store_interposed.h"
#include "loader/store/store_queries.h"
#include "loader/track/address_map.h"

/* ---- the API library ---- */

/* Asked only once the copy is claimed, the system's loader cannot be about to map or unmap it for
 * another context. */
static int claim_api(struct exti_ctx *ctx, const char *copy, struct exti_error *err)
{
    const bool claimed = exti__address_map_claim(ctx, copy);
    int rc;

    if (claimed && !exti__dl_is_open(copy))
        return 0;
    if (claimed)
        exti__address_map_unclaim(ctx);
    rc = exti__fail(err, EXTI_E_BUSY, EXTI_NO_OFFSET,
                    "is already loaded in this process; give each context its own directory");
    exti__error_file(err, copy);
    return rc;
}

/* api_lock is held. */
static int open_api(struct exti_ctx *ctx, struct exti_opening *o, struct exti_error *err)
{
    const char *copy, *source;
    int rc = exti__store_api(&ctx->store, &copy, &source, err);

    if (!rc)
        rc = claim_api(ctx, copy, err);
    if (rc)
        return rc;
    rc = exti__open_with_dependencies(ctx, source, o, err);
    if (rc)
        exti__address_map_unclaim(ctx);
    else
        ctx->api = o->places[0].m;
    return rc;
}

int exti__api(struct exti_ctx *ctx, struct exti_module **out, struct exti_error *err)
{
    struct exti_opening o;
    struct exti_module *api;
    bool opened = false;
    int rc = 0;

    if (ctx->flags & EXTI_CTX_COPY_ONLY)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET,
                          "the context was opened with EXTI_CTX_COPY_ONLY; it cannot load");
    pthread_mutex_lock(&ctx->api_lock);
    if (!ctx->api) {
        rc = open_api(ctx, &o, err);
        opened = !rc;
    }
    api = ctx->api;
    pthread_mutex_unlock(&ctx->api_lock);
    if (opened)
        rc = exti__opening_finish(ctx, &o, &api, err);
    else if (!rc)
        rc = exti__await_initialised(api, err);
    if (!rc)
        *out = api;
    return rc;
}

/* ---- other modules ---- */

/* Files of whose symbols the process interposes none, see load/interposed.c.  The process may have
 * opened others since, but references that these capture are re-pointed after the opening. */
static struct exti_file_memo uncaptured;

/* What references are not re-pointed to: weak symbols, and thread-local variables that are found by
 * a fixed offset. */
#define STAYS_CAPTURED (EXTI_SYM_WEAK | EXTI_SYM_UNIQUE | EXTI_SYM_TLS)

static int is_interposed(struct exti_ctx *ctx, const char *original, bool *out,
                         struct exti_error *err)
{
    const uint64_t file = exti__file_version(original);
    struct exti_image *im;
    int rc;

    *out = false;
    if (exti__file_memo_has(&uncaptured, file))
        return 0;
    rc = exti__store_image_take(&ctx->store, original, &im, err);
    if (rc)
        return rc;
    rc = exti__store_is_interposed(&ctx->store, im, (struct exti_uncounted){0}, out, err);
    if (!rc && !*out && !exti__image_exports(im, STAYS_CAPTURED))
        exti__file_memo_add(&uncaptured, file);
    exti__store_image_give(&ctx->store, im);
    return rc;
}

/* *out: a module that is loaded already, or NULL; then the opening is to be finished. */
static int open_source(struct exti_ctx *ctx, const char *original, struct exti_opening *o,
                       struct exti_module **out, struct exti_error *err)
{
    const char *copy, *source;
    bool interposed;
    int rc = is_interposed(ctx, original, &interposed, err);

    if (!rc)
        rc = exti__store_copy(&ctx->store, original, interposed, &copy, &source, err);
    if (rc)
        return rc;
    *out = exti__module_find(ctx, source);
    return *out ? 0 : exti__open_with_dependencies(ctx, source, o, err);
}

/* A package manager may replace the file between its copying and the mapping of its code. */
#define ATTEMPTS 3

static int open_unchanged(struct exti_ctx *ctx, const char *original, struct exti_opening *o,
                          struct exti_module **out, struct exti_error *err)
{
    struct exti_error e = {0};
    int rc = 0;

    for (int i = 0; i < ATTEMPTS; i++) {
        exti__store_images_begin(&ctx->store);
        rc = open_source(ctx, original, o, out, &e);
        exti__store_images_end(&ctx->store);
        if (rc != EXTI_E_IO || e.os_error != ESTALE)
            break;
    }
    if (rc && err)
        *err = e;
    return rc;
}

/* Owns no memory but the opening's while constructors run, as they may not return. */
int exti__load(struct exti_ctx *ctx, const char *original, struct exti_module **out,
               struct exti_error *err)
{
    struct exti_module *m, *api;
    struct exti_opening o;
    int rc = exti__api(ctx, &api, err);

    if (!rc)
        rc = open_unchanged(ctx, original, &o, &m, err);
    if (rc)
        return rc;
    if (!m)
        return exti__opening_finish(ctx, &o, out, err);
    rc = exti__await_initialised(m, err);
    if (rc)
        exti__close(m, NULL);
    else
        *out = m;
    return rc;
}

int exti__symbol(const struct exti_module *m, const char *name, void **out, struct exti_error *err)
{
    const char *private_name = exti__store_private_symbol(&m->ctx->store, name);
    void *p = private_name ? exti__dl_symbol(m->handle, private_name) : NULL;
    int rc;

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
