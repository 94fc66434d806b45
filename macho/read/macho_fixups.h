/* The chains of LC_DYLD_CHAINED_FIXUPS. */
#ifndef MACHO_READ_MACHO_FIXUPS_H
#define MACHO_READ_MACHO_FIXUPS_H

#include "macho/read/macho_chained.h"

struct macho_fixup {
    uint64_t offset; /* the slot's offset in the slice */
    uint64_t raw;
    uint16_t format; /* DYLD_CHAINED_PTR_* */
    bool is_bind;
    uint32_t import; /* is_bind */
    int64_t addend;  /* is_bind: the slot's own, added to the import's */
    uint64_t target; /* a rebase's target, from the image's start, without its high byte */
};

/* Calls `each` for every slot of every chain, in file order per segment.  Bounded by the page
 * sizes. */
int exti__macho_fixups(const struct macho_file *f, const struct macho_chained *c,
                       int (*each)(void *user, const struct macho_fixup *x, struct exti_error *err),
                       void *user, struct exti_error *err);

#endif
