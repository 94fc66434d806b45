#include "loader/store/store_interposed.h"

#include "base/error.h"
#include "base/mem.h"
#include "loader/image/file_memo.h"
#include "loader/process/dl.h"
#include "loader/process/name_filter.h"

/* Few names pass the filter, so only these are compared with others. */
static bool any_global(const struct exti_filtered_name *names, size_t count,
                       bool (*uncounted)(const char *name))
{
    for (size_t i = 0; i < count; i++)
        if (names[i].may && !(uncounted && uncounted(names[i].name)) &&
            exti__dl_global(names[i].name))
            return true;
    return false;
}

int exti__store_is_interposed(const struct exti_store *s, const struct exti_image *im,
                              struct exti_uncounted uncounted, bool *out, struct exti_error *err)
{
    struct exti_filtered_name *names;
    size_t count = 0;

    *out = false;
    if (s->copy_only || im->format != EXTI_FORMAT_ELF)
        return 0;
    names = exti__calloc(im->info.symbol_count + 1, sizeof *names);
    if (!names)
        return exti__fail_nomem(err);
    for (size_t i = 0; i < im->info.symbol_count; i++)
        if ((im->symbols[i].flags & EXTI_SYM_EXPORT) && !(im->symbols[i].flags & uncounted.flags))
            names[count++].name = im->symbols[i].name;
    exti__filter_names(names, count, s->is_copy);
    *out = any_global(names, count, uncounted.named);
    exti__free(names);
    return 0;
}

static struct exti_file_memo interposed;
static atomic_bool any_interposed; /* most processes have none, and look at no file here */

void exti__store_note_interposed(const char *source)
{
    exti__file_memo_add(&interposed, exti__file_version(source));
    any_interposed = true;
}

bool exti__store_noted_interposed(const struct exti_store *s, const char *source)
{
    return any_interposed && !s->copy_only &&
           exti__file_memo_has(&interposed, exti__file_version(source));
}
