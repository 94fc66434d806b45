/* Checks of the section headers. */
#ifndef ELF_CHECK_ELF_CHECK_SECTION_H
#define ELF_CHECK_ELF_CHECK_SECTION_H

#include "elf/check/elf_check_state.h"

int exti__elf_check_sections(struct elf_check *c, struct exti_error *err);
/* The address that section `i` of the original must have in the copy. */
uint64_t exti__elf_section_moved(const struct elf_check *c, size_t i);

#endif
