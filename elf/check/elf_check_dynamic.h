/* Checks of the dynamic section. */
#ifndef ELF_CHECK_ELF_CHECK_DYNAMIC_H
#define ELF_CHECK_ELF_CHECK_DYNAMIC_H

#include "elf/check/elf_check_state.h"

int exti__elf_check_tags(struct elf_check *c, struct exti_error *err);
int exti__elf_check_id(struct elf_check *c, struct exti_error *err);
int exti__elf_check_needed(struct elf_check *c, struct exti_error *err);
int exti__elf_check_path(struct elf_check *c, struct exti_error *err);
int exti__elf_check_flags(struct elf_check *c, struct exti_error *err);
int exti__elf_check_terminator(struct elf_check *c, struct exti_error *err);

#endif
