/* The dynamic symbol table and its version words. */
#ifndef ELF_READ_ELF_SYMBOLS_H
#define ELF_READ_ELF_SYMBOLS_H

#include "elf/read/elf_file.h"

/* Fills in symtab, sym, sym_count and versym; a step of exti__elf_open.  No field gives the number
 * of symbols, so the hash tables or else the relocations determine it. */
int exti__elf_read_symbols(struct elf_file *f, struct exti_error *err);
/* Symbol `i`'s DT_VERSYM word; 1 (global, no version) without DT_VERSYM. */
uint16_t exti__elf_versym(const struct elf_file *f, size_t i);
/* File offset of symbol table entry `i`. */
uint64_t exti__elf_sym_offset(const struct elf_file *f, size_t i);

#endif
