/* The segments that whoever loads a copy may map from the original, and what a copy need not have
 * of them. */
#ifndef ELF_READ_ELF_SHAREABLE_H
#define ELF_READ_ELF_SHAREABLE_H

#include "base/shareable.h"
#include "elf/read/elf_file.h"

/* `text_relocations`: whether loaders write to read-only segments. */
int exti__elf_shareable(const struct elf_file *f, bool text_relocations, struct exti_shareable *out,
                        struct exti_error *err);

#endif
