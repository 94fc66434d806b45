/* CPU types and subtypes. */
#ifndef MACHO_READ_MACHO_ARCH_H
#define MACHO_READ_MACHO_ARCH_H

#include <stdbool.h>
#include <stdint.h>

/* The subtype without its capability bits, in the high byte. */
uint32_t exti__macho_plain_subtype(uint32_t cpusubtype);

/* "x86-64", "arm64", "arm64e", "i386", "PowerPC", ... or "unknown"; static. */
const char *exti__macho_arch(uint32_t cputype, uint32_t cpusubtype);

bool exti__macho_is_arm64e(uint32_t cputype, uint32_t cpusubtype);

/* Whether 64-bit little-endian files for this architecture can be rewritten. */
bool exti__macho_arch_handled(uint32_t cputype, uint32_t cpusubtype);

#endif
