/* The decided edit as patches. */
#ifndef ELF_EDIT_ELF_EMIT_H
#define ELF_EDIT_ELF_EMIT_H

#include "elf/edit/elf_edit.h"

/* Writes the whole edit into e->plan. */
int exti__elf_emit(struct elf_edit *e, struct exti_error *err);

#endif
