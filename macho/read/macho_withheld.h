/* Initialisers and terminators that dyld is not to run: a copy keeps them where they are, but in a
 * way that dyld passes over, and whoever opens the copy runs them.
 *
 * dyld finds them by the types of sections, whatever their names (dyld, forEachInitializer and
 * forEachTerminator).  A withheld section is S_REGULAR and has its old type in attribute bits that
 * neither mach-o/loader.h nor a linker uses.  LC_ROUTINES_64 (ld -init) gets a number that dyld
 * does not know; it refuses only those with LC_REQ_DYLD (validStructureLoadCommands). */
#ifndef MACHO_READ_MACHO_WITHHELD_H
#define MACHO_READ_MACHO_WITHHELD_H

#include <stdbool.h>
#include <stdint.h>

#include "macho/read/macho_defs.h"

#define EXTI_LC_ROUTINES_64 (0x65787400u | LC_ROUTINES_64)

#define EXTI_S_WITHHELD 0x00800000u
#define EXTI_S_SPARE 0x00ff0000u /* EXTI_S_WITHHELD and the old type */

/* Whether dyld runs what sections of this type hold. */
static inline bool exti__macho_type_runs(uint32_t type)
{
    return type == S_MOD_INIT_FUNC_POINTERS || type == S_MOD_TERM_FUNC_POINTERS ||
           type == S_INIT_FUNC_OFFSETS;
}

/* The type that a section with these flags has, or had before it was withheld. */
static inline uint32_t exti__macho_section_type(uint32_t flags)
{
    const uint32_t was = (flags & EXTI_S_SPARE & ~EXTI_S_WITHHELD) >> 16;

    return (flags & SECTION_TYPE) == S_REGULAR && flags & EXTI_S_WITHHELD &&
                   exti__macho_type_runs(was)
               ? was
               : flags & SECTION_TYPE;
}

static inline bool exti__macho_section_is_withheld(uint32_t flags)
{
    return exti__macho_section_type(flags) != (flags & SECTION_TYPE);
}

/* The flags under which a copy withholds a section that dyld would run; any others as they are. */
static inline uint32_t exti__macho_withheld_flags(uint32_t flags)
{
    const uint32_t type = flags & SECTION_TYPE;

    return exti__macho_type_runs(type)
               ? (flags & ~(SECTION_TYPE | EXTI_S_SPARE)) | EXTI_S_WITHHELD | type << 16
               : flags;
}

/* Likewise of a load command's number. */
static inline uint32_t exti__macho_withheld_command(uint32_t cmd)
{
    return cmd == LC_ROUTINES_64 ? EXTI_LC_ROUTINES_64 : cmd;
}

#endif
