/* Elsewhere than with ld.so there are no folders that an ELF file's needs could be looked for in:
 * they are shared. */
#include "loader/resolve/search.h"

const struct exti_search_ops *exti__search_elf(void)
{
    return NULL;
}
