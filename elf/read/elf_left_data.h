/* Initialised data that a lean copy need not have. */
#ifndef ELF_READ_ELF_LEFT_DATA_H
#define ELF_READ_ELF_LEFT_DATA_H

#include "base/unread.h"
#include "elf/read/elf_file.h"

/* Gives the end of a writable segment's file part of which loaders, while they bind references,
 * read no byte, and write only words, as relocations with addends say.  If they take it for zeros,
 * as they do what follows it, whoever has the file loaded can read it from the original afterwards,
 * and put these words back.  `n` is 0 if there is none, or too little or too much: always on other
 * machines than x86-64 and arm64.  It begins at an offset and an address that are multiples of
 * 4096. */
int exti__elf_left_data(const struct elf_file *f, struct exti_range *out, struct exti_error *err);

#endif
