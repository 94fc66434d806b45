/* The symbol table. */
#ifndef MACHO_READ_MACHO_SYMBOLS_H
#define MACHO_READ_MACHO_SYMBOLS_H

#include "macho/read/macho_file.h"

struct macho_nlist {
    const char *name;
    uint8_t type, sect;
    uint16_t desc;
    uint64_t value;
    uint64_t at; /* slice offset of its nlist_64 */
};

size_t exti__macho_symbol_count(const struct macho_file *f);
int exti__macho_symbol(const struct macho_file *f, size_t i, struct macho_nlist *out,
                       struct exti_error *err);

/* Whether other images define the symbol. */
bool exti__macho_is_undefined(const struct macho_nlist *n);
/* The library that an undefined symbol names: BIND_SPECIAL_DYLIB_* or from 1. */
int32_t exti__macho_nlist_ordinal(const struct macho_file *f, const struct macho_nlist *n);

#endif
