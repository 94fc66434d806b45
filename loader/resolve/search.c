#include "loader/resolve/search_elf.h"
#include "loader/resolve/search_macho.h"
#include "loader/resolve/search_pe.h"

const struct exti_search_ops *exti__search_ops(enum exti_file_format format)
{
    switch (format) {
    case EXTI_FORMAT_ELF:
        return exti__search_elf();
    case EXTI_FORMAT_MACHO:
        return exti__search_macho();
    case EXTI_FORMAT_PE:
        return exti__search_pe();
    default:
        return NULL;
    }
}
