/* The text of changed references. */
#ifndef ELF_EDIT_ELF_TEXT_H
#define ELF_EDIT_ELF_TEXT_H

#include "elf/edit/elf_edit.h"

/* Places every new text in e->strings and notes its offset. */
int exti__elf_place_text(struct elf_edit *e, struct exti_error *err);

#endif
