/* Checks of the ELF header and the program headers. */
#ifndef ELF_CHECK_ELF_CHECK_LAYOUT_H
#define ELF_CHECK_ELF_CHECK_LAYOUT_H

#include "elf/check/elf_check_state.h"

/* Fills in c->match and c->new_load. */
void exti__elf_match_headers(struct elf_check *c);
int exti__elf_check_header(struct elf_check *c, struct exti_error *err);
int exti__elf_check_header_count(struct elf_check *c, struct exti_error *err);
int exti__elf_check_program_headers(struct elf_check *c, struct exti_error *err);
int exti__elf_check_stack(struct elf_check *c, struct exti_error *err);
int exti__elf_check_loads(struct elf_check *c, struct exti_error *err);
int exti__elf_check_contained(struct elf_check *c, struct exti_error *err);
int exti__elf_check_notes(struct elf_check *c, struct exti_error *err);

#endif
