#include "loader/resolve/captured.h"

#include "loader/image/symbol_names.h"
#include "loader/process/program.h"

bool exti__is_captured(const struct exti_image *im)
{
    if (im->format != EXTI_FORMAT_ELF || !exti__program_has_exports())
        return false;
    for (size_t i = 0; i < im->info.symbol_count; i++) {
        const struct exti_image_symbol *s = &im->symbols[i];

        /* The program's hash table answers first, as most names are not in it. */
        if ((s->flags & EXTI_SYM_EXPORT) && !(s->flags & (EXTI_SYM_WEAK | EXTI_SYM_UNIQUE)) &&
            exti__program_exports(s->name) && !exti__is_file_symbol(s->name) &&
            !exti__is_allocation_function(s->name))
            return true;
    }
    return false;
}
