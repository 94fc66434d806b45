/* The list of needed libraries. */
#ifndef ELF_EDIT_ELF_NEEDED_H
#define ELF_EDIT_ELF_NEEDED_H

#include "elf/edit/elf_edit.h"

/* Edits the DT_NEEDED entries, and the vn_file of each version table entry that names a changed
 * one. */
int exti__elf_edit_needed(struct elf_edit *e, struct exti_error *err);

#endif
