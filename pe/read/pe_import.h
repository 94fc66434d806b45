/* Reads imports and delay imports. */
#ifndef PE_READ_PE_IMPORT_H
#define PE_READ_PE_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pe/read/pe_file.h"

struct pe_import {
    const char *name; /* the DLL's, in the file's bytes */
    uint64_t at;      /* file offset of its descriptor */
    uint64_t name_at; /* file offset of the field that holds the name's address */
    uint32_t name_rva;
    uint32_t lookup_rva; /* the import lookup table: OriginalFirstThunk, else FirstThunk */
    uint64_t lookup_at;  /* file offset of the field that holds lookup_rva */
    uint32_t iat_rva, timestamp;
    bool delay;
    bool by_address; /* delay import, version 1: fields hold addresses, not RVAs */
};

/* Calls `each` for every import descriptor, then for every delay import descriptor, in order, until
 * it returns non-zero, which is passed on.  EXTI_E_UNSUPPORTED for an import that is bound and has
 * no import lookup table: the addresses have replaced the symbols' names. */
int exti__pe_imports(const struct pe_file *f,
                     int (*each)(void *user, const struct pe_import *im, struct exti_error *err),
                     void *user, struct exti_error *err);

/* Calls `each` for every symbol of one import, likewise.  `name` is NULL for an import by
 * ordinal. */
int exti__pe_import_symbols(const struct pe_file *f, const struct pe_import *im,
                            int (*each)(void *user, const char *name, uint16_t ordinal,
                                        struct exti_error *err),
                            void *user, struct exti_error *err);

#endif
