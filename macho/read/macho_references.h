/* The names that dyld binds an image by. */
#ifndef MACHO_READ_MACHO_REFERENCES_H
#define MACHO_READ_MACHO_REFERENCES_H

#include "macho/read/macho_file.h"

struct macho_reference {
    const char *name;
    int32_t ordinal; /* BIND_SPECIAL_DYLIB_* or from 1 */
    bool weak_import;
    uint64_t at; /* slice offset of the import entry or opcode */
};

/* Calls `each` once for every distinct name, library and weakness: from the chained imports, or
 * from the opcode streams (the weak stream's as BIND_SPECIAL_DYLIB_WEAK_LOOKUP), or, in a file
 * with neither, from the undefined symbols. */
int exti__macho_references(const struct macho_file *f,
                           int (*each)(void *user, const struct macho_reference *r,
                                       struct exti_error *err),
                           void *user, struct exti_error *err);

/* Maximum total length of the names that are looked up.  Without a limit, overlapping names could
 * make comparisons take time quadratic in the file's size. */
uint64_t exti__macho_names_limit(const struct macho_file *f);

#endif
