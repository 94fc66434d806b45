/* ELF shared objects as the loader sees them. */
#ifndef ELF_ELF_FORMAT_H
#define ELF_ELF_FORMAT_H

#include "loader/base/format.h"

extern const struct exti_format_ops exti__elf_format;

#endif
