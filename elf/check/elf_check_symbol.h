/* Checks of the symbol tables and of symbol versions. */
#ifndef ELF_CHECK_ELF_CHECK_SYMBOL_H
#define ELF_CHECK_ELF_CHECK_SYMBOL_H

#include "elf/check/elf_check_state.h"

int exti__elf_check_symbols(struct elf_check *c, struct exti_error *err);
int exti__elf_check_versions(struct elf_check *c, struct exti_error *err);
int exti__elf_check_static_symbols(struct elf_check *c, struct exti_error *err);

#endif
