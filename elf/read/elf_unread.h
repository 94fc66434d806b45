/* The unread parts of an ELF file: large sections of code and data, if no other header names any of
 * their bytes. */
#ifndef ELF_READ_ELF_UNREAD_H
#define ELF_READ_ELF_UNREAD_H

#include "base/unread.h"

extern const struct exti_unread_ops exti__elf_unread;

#endif
