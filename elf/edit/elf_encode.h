/* Writing native values in the file's class and byte order. */
#ifndef ELF_EDIT_ELF_ENCODE_H
#define ELF_EDIT_ELF_ENCODE_H

#include "elf/read/elf_file.h"

void exti__elf_put_half(const struct elf_file *f, uint8_t *p, uint16_t v);
void exti__elf_put_word(const struct elf_file *f, uint8_t *p, uint32_t v);
void exti__elf_put_addr(const struct elf_file *f, uint8_t *p, uint64_t v); /* 4 or 8 bytes */
void exti__elf_put_dyn(const struct elf_file *f, uint8_t *p, const GElf_Dyn *d);
void exti__elf_put_phdr(const struct elf_file *f, uint8_t *p, const GElf_Phdr *ph);
void exti__elf_put_shdr(const struct elf_file *f, uint8_t *p, const GElf_Shdr *sh);

#endif
