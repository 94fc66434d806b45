#include "loader/load/interposed.h"

#include "base/error.h"
#include "base/format.h"
#include "base/mem.h"
#include "loader/image/file_memo.h"
#include "loader/image/symbol_names.h"
#include "loader/process/dl.h"
#include "loader/process/name_filter.h"
#include "loader/store/store_copy.h"
#include "loader/store/store_queries.h"
#include "loader/track/address_map.h"

static bool is_candidate(const struct exti_image_symbol *s)
{
    return (s->flags & EXTI_SYM_EXPORT) && !(s->flags & (EXTI_SYM_WEAK | EXTI_SYM_UNIQUE)) &&
           !exti__is_allocation_function(s->name);
}

/* What contexts have opened is local to them, but may be other copies of the same file. */
static bool is_contexts(uintptr_t address)
{
    struct exti_module m;

    return exti__address_map_find(address, &m);
}

static bool has_global(const struct exti_filtered_name *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (names[i].may && exti__dl_global(names[i].name))
            return true;
    return false;
}

static int is_interposed(const struct exti_image *im, bool *out, struct exti_error *err)
{
    struct exti_filtered_name *names = exti__calloc(im->info.symbol_count + 1, sizeof *names);
    size_t count = 0;

    if (!names)
        return exti__fail_nomem(err);
    for (size_t i = 0; i < im->info.symbol_count; i++)
        if (is_candidate(&im->symbols[i]))
            names[count++].name = im->symbols[i].name;
    exti__filter_names(names, count, is_contexts);
    *out = has_global(names, count);
    exti__free(names);
    return 0;
}

/* Files of whose symbols the process interposes none: every context needs the same files.  One that
 * is taken for such a file by mistake has its references re-pointed after it is opened. */
static struct exti_file_memo uncaptured;

int exti__interposed_make_symbolic(struct exti_ctx *ctx, const char *source, struct exti_error *err)
{
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
    rc = exti_inspect(source, &im, err);
    if (rc)
        return rc;
    rc = is_interposed(im, &interposed, &e);
    if (!rc && interposed)
        rc = exti__store_make_symbolic(&ctx->store, source, &e);
    else if (!rc)
        exti__file_memo_add(&uncaptured, file);
    exti_image_free(im);
    if (rc == EXTI_E_NOMEM)
        return exti__fail_nomem(err);
    /* Most likely the directory is read-only.  What can be re-pointed after the opening will be. */
    if (rc)
        exti__ctx_log(ctx, EXTI_LOG_WARN, "%s: the process captures its symbols: %s", source,
                      e.message);
    return 0;
}
