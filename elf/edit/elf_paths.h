/* The library search paths. */
#ifndef ELF_EDIT_ELF_PATHS_H
#define ELF_EDIT_ELF_PATHS_H

#include "elf/edit/elf_edit.h"

/* Edits DT_RUNPATH and DT_RPATH. */
int exti__elf_edit_paths(struct elf_edit *e, struct exti_error *err);

#endif
