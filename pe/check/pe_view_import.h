/* The self-check's own reading of imports and delay imports. */
#ifndef PE_CHECK_PE_VIEW_IMPORT_H
#define PE_CHECK_PE_VIEW_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pe/check/pe_view.h"

struct pe_check;

/* An import or delay import descriptor. */
struct pe_dll {
    uint64_t at; /* file offset */
    const char *name;
    uint64_t name_at; /* file offset of `name` */
    uint32_t lookup, iat, timestamp, chain, attributes, handle;
    bool delay;
};
struct pe_dlls {
    struct pe_dll *v; /* owned */
    size_t n, cap;
};

/* One imported symbol. */
struct pe_thunk {
    const char *name; /* NULL: by ordinal */
    uint16_t number;  /* the hint or the ordinal */
};

/* "import" or "delay import". */
const char *exti__pe_import_kind(bool delay);
/* Appends the descriptors to *out.  A breach of the loader's rules is reported and ends the
 * list. */
int exti__pe_dlls(struct pe_check *c, const struct pe_view *v, bool delay, struct pe_dlls *out,
                  struct exti_error *err);
void exti__pe_dlls_free(struct pe_dlls *list);
/* Symbol `i` of the import.  False at the end of the table, and with *sound false if the symbol
 * cannot be read. */
bool exti__pe_thunk(const struct pe_view *v, const struct pe_dll *dll, size_t i,
                    struct pe_thunk *out, bool *sound);

#endif
