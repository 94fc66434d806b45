/* Opening a file and closing it again. */
#ifndef ELF_READ_ELF_OPEN_H
#define ELF_READ_ELF_OPEN_H

#include "elf/read/elf_file.h"

/* Opens and validates a shared object.  EXTI_E_FORMAT for malformed files, EXTI_E_UNSUPPORTED for
 * other kinds of ELF file.  `file` must outlive `f`.  On failure nothing is left to close. */
int exti__elf_open(struct exti_span file, struct elf_file *f, struct exti_error *err);
/* Opens a shared object or a program, including one with fixed addresses. */
int exti__elf_open_program(struct exti_span file, struct elf_file *f, struct exti_error *err);
/* Frees what `f` owns and empties it. */
void exti__elf_close(struct elf_file *f);

#endif
