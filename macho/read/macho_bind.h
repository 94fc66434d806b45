/* LC_DYLD_INFO's bind opcodes. */
#ifndef MACHO_READ_MACHO_BIND_H
#define MACHO_READ_MACHO_BIND_H

#include "macho/read/macho_file.h"

struct macho_bind {
    const char *symbol; /* in the file's bytes */
    int64_t addend;
    uint64_t offset; /* in its segment */
    uint32_t segment;
    int32_t ordinal;     /* BIND_SPECIAL_DYLIB_* or from 1; unused in the weak stream */
    uint8_t type, flags; /* BIND_TYPE_*, BIND_SYMBOL_FLAGS_* */
    bool is_override;    /* weak stream: NON_WEAK_DEFINITION, which binds nothing */
    uint64_t at;         /* slice offset of the opcode that set the ordinal (or symbol) */
};

/* Runs the stream `kind` (MACHO_BIND, MACHO_WEAK_BIND or MACHO_LAZY_BIND) as dyld does and calls
 * `each` for every binding, in order.  Bounded: hostile repeat counts are EXTI_E_FORMAT.  arm64e's
 * threaded opcodes are EXTI_E_UNSUPPORTED. */
int exti__macho_binds(const struct macho_file *f, enum macho_piece_kind kind,
                      int (*each)(void *user, const struct macho_bind *b, struct exti_error *err),
                      void *user, struct exti_error *err);

#endif
