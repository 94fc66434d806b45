/* New names for dynamic symbols. */
#ifndef ELF_EDIT_ELF_RENAME_H
#define ELF_EDIT_ELF_RENAME_H

#include "elf/edit/elf_edit.h"

/* Fills in e->names from opts->renames. */
int exti__elf_edit_names(struct elf_edit *e, struct exti_error *err);

#endif
