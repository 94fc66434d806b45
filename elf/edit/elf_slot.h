/* Room for one more program header. */
#ifndef ELF_EDIT_ELF_SLOT_H
#define ELF_EDIT_ELF_SLOT_H

#include "elf/edit/elf_edit.h"

/* Makes room for one more program header, directly after the last PT_LOAD, and gives its index. */
int exti__elf_add_phdr_slot(struct elf_edit *e, size_t *index, struct exti_error *err);

#endif
