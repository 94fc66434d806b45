/* The two symbol hash tables, DT_HASH and DT_GNU_HASH. */
#ifndef ELF_READ_ELF_HASH_H
#define ELF_READ_ELF_HASH_H

#include "elf/read/elf_file.h"

uint32_t exti__elf_gnu_hash(const char *name);
uint32_t exti__elf_sysv_hash(const char *name);

/* Decode the tables into f->gnu and f->sysv; steps of exti__elf_open.  The table must be
 * present. */
int exti__elf_gnu_table(struct elf_file *f, struct exti_error *err);
int exti__elf_sysv_table(struct elf_file *f, struct exti_error *err);

#endif
