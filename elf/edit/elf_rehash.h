/* The hash tables after renames. */
#ifndef ELF_EDIT_ELF_REHASH_H
#define ELF_EDIT_ELF_REHASH_H

#include "elf/edit/elf_edit.h"

/* Fills in the sizes and the new contents of both hash tables. */
int exti__elf_edit_hashes(struct elf_edit *e, struct exti_error *err);

#endif
