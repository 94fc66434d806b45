/* Checks of the symbol hash tables. */
#ifndef ELF_CHECK_ELF_CHECK_HASH_H
#define ELF_CHECK_ELF_CHECK_HASH_H

#include "elf/check/elf_check_state.h"

int exti__elf_check_gnu_hash(struct elf_check *c, struct exti_error *err);
int exti__elf_check_sysv_hash(struct elf_check *c, struct exti_error *err);
/* The table's size in bytes; 0 when there is none or it does not lie in the file. */
uint64_t exti__elf_gnu_hash_size(const struct elf_file *f);
uint64_t exti__elf_sysv_hash_size(const struct elf_file *f);

#endif
