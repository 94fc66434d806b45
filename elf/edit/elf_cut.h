/* What a lean copy is without. */
#ifndef ELF_EDIT_ELF_CUT_H
#define ELF_EDIT_ELF_CUT_H

#include "elf/edit/elf_edit.h"

/* Gives the sealed plan its cut: elf/read/elf_left_data.h. */
int exti__elf_plan_cut(struct elf_edit *e, struct exti_error *err);

#endif
