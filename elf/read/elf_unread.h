/* The unread parts of an ELF file: large sections of code and data, and many relative relocations,
 * if no other header names any of their bytes. */
#ifndef ELF_READ_ELF_UNREAD_H
#define ELF_READ_ELF_UNREAD_H

#include "base/unread.h"

extern const struct exti_unread_ops exti__elf_unread;

/* Gives the parts that are not read of a file whose other bytes are all there. */
void exti__elf_find_unread(struct exti_span file, struct exti_unread *out);

#endif
