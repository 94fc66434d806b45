#include "loader/load/interposed.h"

#include "base/error.h"
#include "base/format.h"
#include "base/image.h"
#include "loader/image/file_memo.h"
#include "loader/image/symbol_names.h"
#include "loader/store/store_copy.h"
#include "loader/store/store_images.h"
#include "loader/store/store_interposed.h"
#include "loader/store/store_queries.h"

/* Files of whose symbols the process interposes none: every context needs the same files.  The
 * process may have opened others since, but references that these capture are re-pointed after the
 * opening, if they are not to thread-local variables that are found by a fixed offset. */
static struct exti_file_memo uncaptured;

int exti__interposed_make_symbolic(struct exti_ctx *ctx, const char *source, struct exti_error *err)
{
    const struct exti_uncounted uncounted = {EXTI_SYM_WEAK | EXTI_SYM_UNIQUE,
                                             exti__is_allocation_function};
    struct exti_error e = {0};
    struct exti_image *im;
    bool interposed = false;
    uint64_t file;
    int rc;

    if (exti__store_format(&ctx->store) != EXTI_FORMAT_ELF)
        return 0;
    file = exti__file_version(source);
    if (exti__file_memo_has(&uncaptured, file))
        return 0;
    rc = exti__store_image_take(&ctx->store, source, &im, err);
    if (rc)
        return rc;
    rc = exti__store_is_interposed(&ctx->store, im, uncounted, &interposed, &e);
    if (!rc && !interposed && !exti__image_exports(im, EXTI_SYM_TLS))
        exti__file_memo_add(&uncaptured, file);
    exti__store_image_give(&ctx->store, im);
    if (!rc && interposed) {
        exti__store_note_interposed(source);
        rc = exti__store_make_symbolic(&ctx->store, source, &e);
    }
    if (rc == EXTI_E_NOMEM)
        return exti__fail_nomem(err);
    /* Most likely the directory is read-only.  What can be re-pointed after the opening will be. */
    if (rc)
        exti__ctx_log(ctx, EXTI_LOG_WARN, "%s: the process captures its symbols: %s", source,
                      e.message);
    return 0;
}
