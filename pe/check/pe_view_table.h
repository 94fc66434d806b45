/* The self-check's own reading of relocations and the load configuration. */
#ifndef PE_CHECK_PE_VIEW_TABLE_H
#define PE_CHECK_PE_VIEW_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pe/check/pe_view.h"

/* Calls `each` with the RVA and size of every word that the loader relocates.  *flaw gets the file
 * offset of the first malformed block or entry, which ends the list, or EXTI_NO_OFFSET. */
void exti__pe_relocs(const struct pe_view *v, void (*each)(void *user, uint64_t rva, unsigned size),
                     void *user, uint64_t *flaw);
/* The load configuration.  False if it is not entirely in the file. */
bool exti__pe_load_config(const struct pe_view *v, struct exti_span *out);
/* The file offset of DependentLoadFlags.  False if the load configuration lacks the field. */
bool exti__pe_load_flags_at(const struct pe_view *v, uint64_t *at);

#endif
