/* The last PT_LOAD of an original that was itself rewritten. */
#ifndef ELF_CHECK_ELF_CHECK_BLOCK_H
#define ELF_CHECK_ELF_CHECK_BLOCK_H

#include "elf/check/elf_check_state.h"

/* Finds the PT_LOAD of the original that ends the file and has tables alone, which a copy may lay
 * out anew: other checks compare their contents, wherever they lie. */
void exti__elf_match_block(struct elf_check *c);
/* Whether header `j` of the copy is that PT_LOAD with another size. */
bool exti__elf_is_grown_block(const struct elf_check *c, size_t j);
/* Whether that PT_LOAD, grown in the copy, has the byte at `offset` of the original. */
bool exti__elf_in_grown_block(const struct elf_check *c, uint64_t offset);

#endif
