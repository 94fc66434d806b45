/* The new dynamic section. */
#ifndef ELF_EDIT_ELF_DYNAMIC_H
#define ELF_EDIT_ELF_DYNAMIC_H

#include "elf/edit/elf_edit.h"

/* Decides the new dynamic entries. */
int exti__elf_edit_tags(struct elf_edit *e, struct exti_error *err);
/* Counts the slots.  When they do not suffice, drops entries that loaders can do without, or has
 * the table move. */
void exti__elf_fit_tags(struct elf_edit *e);

#endif
