#include "loader/store/store_interposed.h"

#include "loader/process/dl.h"

bool exti__store_is_interposed(const struct exti_store *s, const struct exti_image *im)
{
    if (s->copy_only || im->format != EXTI_FORMAT_ELF)
        return false;
    for (size_t i = 0; i < im->info.symbol_count; i++)
        if ((im->symbols[i].flags & EXTI_SYM_EXPORT) && exti__dl_global(im->symbols[i].name))
            return true;
    return false;
}
