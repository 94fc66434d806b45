/* The block that an earlier rewrite appended to its copy. */
#ifndef ELF_EDIT_ELF_BLOCK_H
#define ELF_EDIT_ELF_BLOCK_H

#include "elf/edit/elf_edit.h"

/* Gives the index of the PT_LOAD that is such a block, or SIZE_MAX.  Needs the sizes of the hash
 * tables (exti__elf_edit_hashes). */
size_t exti__elf_find_block(const struct elf_edit *e);
/* Whether the structure `m` lies in that PT_LOAD. */
bool exti__elf_in_block(const GElf_Phdr *block, const struct elf_move *m);

#endif
