/* Checks that new contents overwrite nothing that the original has in use. */
#ifndef ELF_CHECK_ELF_CHECK_ROOM_H
#define ELF_CHECK_ELF_CHECK_ROOM_H

#include "elf/check/elf_check_state.h"

int exti__elf_check_table_growth(struct elf_check *c, struct exti_error *err);
int exti__elf_check_load_growth(struct elf_check *c, struct exti_error *err);
int exti__elf_check_tail(struct elf_check *c, struct exti_error *err);

#endif
