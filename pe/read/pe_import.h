/* Imports and delay imports. */
#ifndef PE_READ_PE_IMPORT_H
#define PE_READ_PE_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pe/read/pe_file.h"

struct pe_import {
    const char *name; /* of the DLL */
    uint64_t at;      /* file offset of its descriptor */
    uint64_t name_at; /* file offset of the field that holds the name's address */
    uint32_t name_rva;
    uint32_t lookup_rva; /* its table of names: OriginalFirstThunk, or FirstThunk without one */
    uint64_t lookup_at;  /* file offset of the field that holds its address */
    uint32_t iat_rva, timestamp;
    bool delay;
    bool by_address; /* delay, version 1: fields hold addresses, not RVAs */
};

/* Calls `each` for every import descriptor, then every delay import descriptor, in order, until it
 * returns non-zero, which is passed on.  EXTI_E_UNSUPPORTED for a bound DLL without a table of names
 * but the addresses that took their place. */
int exti__pe_imports(const struct pe_file *f,
                     int (*each)(void *user, const struct pe_import *im, struct exti_error *err),
                     void *user, struct exti_error *err);

/* Calls `each` for every symbol of one import; `name` is NULL for one by ordinal. */
int exti__pe_import_symbols(const struct pe_file *f, const struct pe_import *im,
                            int (*each)(void *user, const char *name, uint16_t ordinal,
                                        struct exti_error *err),
                            void *user, struct exti_error *err);

#endif
