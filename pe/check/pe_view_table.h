/* Relocations and load configuration as the self-check reads them. */
#ifndef PE_CHECK_PE_VIEW_TABLE_H
#define PE_CHECK_PE_VIEW_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pe/check/pe_view.h"

/* Calls `each` with every address that the loader adds to and how many bytes it changes there;
 * *flaw is the file offset of the first thing that is not sound, or EXTI_NO_OFFSET. */
void exti__pe_relocs(const struct pe_view *v, void (*each)(void *user, uint64_t rva, unsigned size),
                     void *user, uint64_t *flaw);
/* The load configuration; false: the file does not have it as a whole. */
bool exti__pe_load_config(const struct pe_view *v, struct exti_span *out);
/* Where DependentLoadFlags stands in the file; false: the load configuration has none. */
bool exti__pe_load_flags_at(const struct pe_view *v, uint64_t *at);

#endif
