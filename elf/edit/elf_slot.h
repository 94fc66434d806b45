/* Room for one more program header. */
#ifndef ELF_EDIT_ELF_SLOT_H
#define ELF_EDIT_ELF_SLOT_H

#include "elf/edit/elf_edit.h"

/* Makes room for one more program header, directly after the last PT_LOAD, and gives its index. */
int exti__elf_add_phdr_slot(struct elf_edit *e, size_t *index, struct exti_error *err);
/* Takes the PT_LOAD `index` out of the table and makes a slot for its successor there, directly
 * after the last of the others.  Gives that slot's index. */
size_t exti__elf_replace_phdr(struct elf_edit *e, size_t index);

#endif
