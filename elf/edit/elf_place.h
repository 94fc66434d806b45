/* New places for the structures that move. */
#ifndef ELF_EDIT_ELF_PLACE_H
#define ELF_EDIT_ELF_PLACE_H

#include "elf/edit/elf_edit.h"

/* Assigns the new places and adapts the program and section headers. */
int exti__elf_place(struct elf_edit *e, struct exti_error *err);

#endif
