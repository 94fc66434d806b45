/* Which machine an ELF file is for.  Pure; any thread. */
#ifndef LOADER_RESOLVE_ELF_KIND_H
#define LOADER_RESOLVE_ELF_KIND_H

#include "loader/resolve/search.h"

/* As much of a file as tells its kind. */
#define EXTI_ELF_KIND_BYTES ((size_t)64)

/* Reads the kind from the ELF header, all that ld.so compares before it takes a file.
 * EXTI_E_FORMAT if the file is not ELF. */
int exti__elf_kind(struct exti_span file, struct exti_elf_kind *out, struct exti_error *err);

/* What ldconfig calls such files in its cache: FLAG_ELF_LIBC6 and the machine, as in glibc's
 * sysdeps/generic/ldconfig.h; 0 where one machine has several ABIs. */
uint32_t exti__elf_kind_in_cache(struct exti_elf_kind k);

#endif
