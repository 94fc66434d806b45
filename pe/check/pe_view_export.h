/* The self-check's own reading of exports. */
#ifndef PE_CHECK_PE_VIEW_EXPORT_H
#define PE_CHECK_PE_VIEW_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pe/check/pe_view.h"

struct pe_check;

struct pe_exported {
    bool present;
    uint64_t at; /* file offset of the directory */
    const char *dll;
    uint64_t dll_at; /* file offset of `dll` */
    struct exti_span directory, functions, names, ordinals;
    uint32_t rva, size, function_count, name_count;
};

/* Opens the export directory.  A breach of the loader's rules is reported and leaves *out without
 * exports. */
void exti__pe_exported(struct pe_check *c, const struct pe_view *v, struct pe_exported *out);
/* Whether the export at `rva` is a forwarder: whether `rva` lies in the export directory's
 * range. */
bool exti__pe_is_forwarder(const struct pe_exported *x, uint32_t rva);
/* The forwarder in that slot of the export address table, or NULL; *rva gets the entry. */
const char *exti__pe_forwarder(const struct pe_view *v, const struct pe_exported *x, uint32_t slot,
                               uint32_t *rva);
/* The RVA behind the last forwarder. */
uint64_t exti__pe_forwarders_end(const struct pe_view *v, const struct pe_exported *x);

#endif
