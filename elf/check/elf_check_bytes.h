/* Checks of the string table and of all bytes that no other check covers. */
#ifndef ELF_CHECK_ELF_CHECK_BYTES_H
#define ELF_CHECK_ELF_CHECK_BYTES_H

#include "elf/check/elf_check_state.h"

int exti__elf_check_strings(struct elf_check *c, struct exti_error *err);
int exti__elf_check_bytes(struct elf_check *c, struct exti_error *err);

#endif
