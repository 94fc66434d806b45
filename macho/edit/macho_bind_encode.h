/* Writing LC_DYLD_INFO's bind opcodes. */
#ifndef MACHO_EDIT_MACHO_BIND_ENCODE_H
#define MACHO_EDIT_MACHO_BIND_ENCODE_H

#include "base/buf.h"
#include "macho/read/macho_bind.h"

/* Appends the opcodes of an eager or weak stream for `list`, in the given order and without the
 * final DONE.  Names the symbol again whenever the ordinal or symbol changes: dyld opens a new
 * target only then. */
int exti__macho_bind_encode(const struct macho_bind *list, size_t count, bool weak,
                            struct exti_buf *out, struct exti_error *err);

#endif
