#include "loader/load/early_code.h"

#include "base/image.h"
#include "loader/image/file_memo.h"
#include "loader/store/store_copy.h"
#include "loader/store/store_images.h"

/* Files without such functions: every context needs the same files. */
static struct exti_file_memo without;

static int has_early_code(struct exti_ctx *ctx, const char *source, bool *out,
                          struct exti_error *err)
{
    const uint64_t file = exti__file_version(source);
    struct exti_image *im;
    int rc;

    *out = false;
    if (exti__file_memo_has(&without, file))
        return 0;
    rc = exti__store_image_take(&ctx->store, source, &im, err);
    if (rc)
        return rc;
    *out = im->shareable.early;
    if (!*out)
        exti__file_memo_add(&without, file);
    exti__store_image_give(&ctx->store, im);
    return 0;
}

/* The API library is made before anything that may look at it. */
static bool is_new(const struct exti_ctx *ctx, const struct exti_opening *o, size_t i)
{
    return !o->places[i].m && (i || ctx->api);
}

/* They are mapped all the same, which changes nothing in a full copy: another process may have made
 * one lean again, or removed it from the manifest. */
static int make_full(struct exti_ctx *ctx, const struct exti_opening *o, struct exti_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < o->set.count && !rc; i++)
        if (is_new(ctx, o, i) && o->set.copies[i].left_out.count)
            rc = exti__store_make_full(&ctx->store, o->set.copies[i].source, err);
    return rc;
}

int exti__early_code_needs_full(struct exti_ctx *ctx, const struct exti_opening *o,
                                struct exti_error *err)
{
    bool lean = false, early = false;
    int rc = 0;

    for (size_t i = 0; i < o->set.count; i++)
        lean = lean || (is_new(ctx, o, i) && o->set.copies[i].left_out.count);
    for (size_t i = 0; i < o->set.count && lean && !early && !rc; i++)
        if (is_new(ctx, o, i) && !o->set.copies[i].left_out.count)
            rc = has_early_code(ctx, o->set.copies[i].source, &early, err);
    return rc || !early ? rc : make_full(ctx, o, err);
}
