/* .symtab, the symbol table for debuggers. */
#ifndef ELF_EDIT_ELF_SYMTAB_H
#define ELF_EDIT_ELF_SYMTAB_H

#include "elf/edit/elf_edit.h"

/* Patches the entries that the edit makes untrue. */
int exti__elf_emit_symtab(struct elf_edit *e, struct exti_error *err);

#endif
