/* Mach-O dylibs and bundles, thin or universal; x86-64 and arm64. */
#ifndef MACHO_MACHO_FORMAT_H
#define MACHO_MACHO_FORMAT_H

#include "base/format.h"

extern const struct exti_format_ops exti__macho_format;

/* One slot that dyld fills by name. */
struct exti_macho_slot {
    const char *name;  /* as in the file, with its underscore */
    uint64_t offset;   /* from the image's start */
    int64_t addend;    /* of the symbol's address in the slot */
    int32_t library;   /* EXTI_BIND_* or the needed library, from 1 */
    bool weak_import;  /* 0 when there is no such symbol */
    bool defined_here; /* the file exports the name */
};

/* Calls `each` for every slot of the file's code for that machine, or until it returns non-zero.
 * EXTI_E_UNSUPPORTED when it has none for it. */
int exti__macho_named_slots(struct exti_span file, uint32_t cputype, uint32_t cpusubtype,
                            int (*each)(void *user, const struct exti_macho_slot *slot), void *user,
                            struct exti_error *err);

#endif
