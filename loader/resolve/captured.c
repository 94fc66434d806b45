#include "loader/resolve/captured.h"

#include "loader/image/file_memo.h"
#include "loader/image/inspect.h"
#include "loader/image/symbol_names.h"
#include "loader/process/program.h"

bool exti__is_captured(const struct exti_image *im)
{
    if (im->format != EXTI_FORMAT_ELF || !exti__program_has_exports())
        return false;
    for (size_t i = 0; i < im->info.symbol_count; i++) {
        const struct exti_image_symbol *s = &im->symbols[i];

        if ((s->flags & EXTI_SYM_EXPORT) && !(s->flags & (EXTI_SYM_WEAK | EXTI_SYM_UNIQUE)) &&
            !exti__is_file_symbol(s->name) && !exti__is_allocation_function(s->name) &&
            exti__program_exports(s->name))
            return true;
    }
    return false;
}

bool exti__is_file_captured(const char *path)
{
    static struct exti_file_memo captured, sound;
    struct exti_image *im;
    uint64_t file;
    bool is;

    if (!exti__program_has_exports())
        return false;
    file = exti__file_version(path);
    if (exti__file_memo_has(&captured, file))
        return true;
    if (exti__file_memo_has(&sound, file) || exti__inspect(path, &im, NULL))
        return false;
    is = exti__is_captured(im);
    exti_image_free(im);
    exti__file_memo_add(is ? &captured : &sound, file);
    return is;
}
