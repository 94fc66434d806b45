/* The export directory. */
#ifndef PE_READ_PE_EXPORT_H
#define PE_READ_PE_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pe/read/pe_file.h"

struct pe_export {
    const char *name; /* NULL: by ordinal only */
    uint32_t ordinal; /* with the base added */
    uint32_t rva;
    const char *forwarder; /* "dll.symbol", or NULL */
    uint64_t slot_at;      /* file offset of its entry in the address table */
};

struct pe_exports {
    bool present;
    const char *dll; /* the export directory's name, or NULL */
    uint64_t at, name_at;
    uint32_t rva, size, base, function_count, name_count;
    uint32_t functions_rva, names_rva, ordinals_rva;
};

int exti__pe_exports_open(const struct pe_file *f, struct pe_exports *out, struct exti_error *err);
/* Calls `each` for every used slot of the address table, by ordinal; named ones once for each name. */
int exti__pe_exports(const struct pe_file *f, const struct pe_exports *x,
                     int (*each)(void *user, const struct pe_export *e, struct exti_error *err),
                     void *user, struct exti_error *err);

#endif
