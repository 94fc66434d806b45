/* The layout of __LINKEDIT. */
#ifndef MACHO_EDIT_MACHO_LINKEDIT_H
#define MACHO_EDIT_MACHO_LINKEDIT_H

#include "macho/edit/macho_build.h"

/* Lays the pieces out in canonical order without gaps, and writes offsets, sizes and the segment's
 * own fields into b->commands.  `out` receives __LINKEDIT up to the signature, padded to the
 * signature's alignment; *fileoff its offset in the copy. */
int exti__macho_linkedit(struct macho_build *b, struct exti_buf *out, uint64_t *fileoff,
                         struct exti_error *err);

#endif
