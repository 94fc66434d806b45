/* CPU types and subtypes. */
#include "macho/read/macho_arch.h"

#include "macho/read/macho_defs.h"

uint32_t exti__macho_plain_subtype(uint32_t cpusubtype)
{
    return cpusubtype & ~CPU_SUBTYPE_MASK;
}

const char *exti__macho_arch(uint32_t cputype, uint32_t cpusubtype)
{
    switch (cputype) {
    case CPU_TYPE_X86_64:
        return exti__macho_plain_subtype(cpusubtype) == CPU_SUBTYPE_X86_64_H ? "x86-64h" : "x86-64";
    case CPU_TYPE_ARM64:
        return exti__macho_plain_subtype(cpusubtype) == CPU_SUBTYPE_ARM64E ? "arm64e" : "arm64";
    case CPU_TYPE_ARM64_32:
        return "arm64_32";
    case CPU_TYPE_I386:
        return "i386";
    case CPU_TYPE_ARM:
        return "arm";
    case CPU_TYPE_POWERPC:
        return "PowerPC";
    case CPU_TYPE_POWERPC64:
        return "PowerPC64";
    default:
        return "unknown";
    }
}

bool exti__macho_is_arm64e(uint32_t cputype, uint32_t cpusubtype)
{
    return cputype == CPU_TYPE_ARM64 && exti__macho_plain_subtype(cpusubtype) == CPU_SUBTYPE_ARM64E;
}

bool exti__macho_arch_handled(uint32_t cputype, uint32_t cpusubtype)
{
    switch (cputype) {
    case CPU_TYPE_X86_64:
        return exti__macho_plain_subtype(cpusubtype) == CPU_SUBTYPE_X86_64_ALL ||
               exti__macho_plain_subtype(cpusubtype) == CPU_SUBTYPE_X86_64_H;
    case CPU_TYPE_ARM64:
        return exti__macho_plain_subtype(cpusubtype) <= CPU_SUBTYPE_ARM64E;
    default:
        return false;
    }
}
