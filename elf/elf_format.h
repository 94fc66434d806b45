/* ELF shared objects as the loader sees them.  This is all that loader/ sees of the format, which
 * has three rooms: read/ opens and describes a file, edit/ plans a rewrite of it, check/ compares a
 * copy with its original.  edit/ and check/ use read/ and share no code with each other. */
#ifndef ELF_ELF_FORMAT_H
#define ELF_ELF_FORMAT_H

#include "base/format.h"
#include "elf/read/elf_withheld.h"

extern const struct exti_format_ops exti__elf_format;

/* Gives the DT_RPATH of a program, including one with fixed addresses.  Loaders search it for every
 * library that the program loads.  *out points into `file`; it is NULL when there is no DT_RPATH,
 * or a DT_RUNPATH that overrides it. */
int exti__elf_program_rpath(struct exti_span file, const char **out, struct exti_error *err);

#endif
