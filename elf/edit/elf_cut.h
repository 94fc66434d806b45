/* What a lean copy is without. */
#ifndef ELF_EDIT_ELF_CUT_H
#define ELF_EDIT_ELF_CUT_H

#include "elf/edit/elf_edit.h"

/* Adds cuts to the sealed plan: of data (elf/read/elf_left_data.h), and of debug sections. */
int exti__elf_cut_data(struct elf_edit *e, struct exti_error *err);
void exti__elf_cut_debug(struct elf_edit *e);

#endif
