/* Systems without ld.so have no folders for the needs of ELF files: these needs are shared. */
#include "loader/resolve/search_elf.h"

const struct exti_search_ops *exti__search_elf(void)
{
    return NULL;
}
