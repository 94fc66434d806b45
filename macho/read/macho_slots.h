/* The slots that dyld binds by name, for callers that compare them with a loaded image. */
#ifndef MACHO_READ_MACHO_SLOTS_H
#define MACHO_READ_MACHO_SLOTS_H

#include <stdbool.h>

#include "base/span.h"

/* A slot that dyld binds by name. */
struct exti_macho_slot {
    const char *name;  /* as in the file, with the leading underscore */
    uint64_t offset;   /* from the image's start */
    int64_t addend;    /* added to the symbol's address */
    int32_t library;   /* EXTI_BIND_* or the needed library, from 1 */
    bool weak_import;  /* the slot is 0 if the symbol is missing */
    bool defined_here; /* the file exports the name */
};

/* Calls `each` for every slot of the file's slice for this CPU type and subtype, until it returns
 * non-zero.  EXTI_E_UNSUPPORTED if there is no such slice. */
int exti__macho_named_slots(struct exti_span file, uint32_t cputype, uint32_t cpusubtype,
                            int (*each)(void *user, const struct exti_macho_slot *slot), void *user,
                            struct exti_error *err);

#endif
