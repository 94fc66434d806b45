/* ELF shared objects as the loader sees them. */
#ifndef ELF_ELF_FORMAT_H
#define ELF_ELF_FORMAT_H

#include "base/format.h"

extern const struct exti_format_ops exti__elf_format;

/* The DT_RPATH of a program, also of one with fixed addresses, which loaders use for all that it loads;
 * *out points into `file`, and is NULL where there is none, or a DT_RUNPATH that takes its place. */
int exti__elf_program_rpath(struct exti_span file, const char **out, struct exti_error *err);

#endif
