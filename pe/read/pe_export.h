/* Reads the export directory. */
#ifndef PE_READ_PE_EXPORT_H
#define PE_READ_PE_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pe/read/pe_file.h"

struct pe_export {
    const char *name; /* NULL: exported by ordinal only */
    uint32_t ordinal; /* Base included */
    uint32_t rva;
    const char *forwarder; /* "dll.symbol", or NULL */
    uint64_t slot_at;      /* file offset of its entry in the export address table */
};

struct pe_exports {
    bool present;
    const char *dll; /* the name in the export directory, or NULL */
    uint64_t at, name_at;
    uint32_t rva, size, base, function_count, name_count;
    uint32_t functions_rva, names_rva, ordinals_rva;
};

/* Reads and checks the directory; out->present is false without one. */
int exti__pe_exports_open(const struct pe_file *f, struct pe_exports *out, struct exti_error *err);
/* Calls `each` for every used entry of the export address table, by ordinal, and once per name if
 * it has names, until it returns non-zero, which is passed on. */
int exti__pe_exports(const struct pe_file *f, const struct pe_exports *x,
                     int (*each)(void *user, const struct pe_export *e, struct exti_error *err),
                     void *user, struct exti_error *err);

#endif
