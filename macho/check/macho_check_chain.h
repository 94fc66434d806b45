/* LC_DYLD_CHAINED_FIXUPS. */
#ifndef MACHO_CHECK_MACHO_CHECK_CHAIN_H
#define MACHO_CHECK_MACHO_CHECK_CHAIN_H

#include "macho/check/macho_check_state.h"
#include "macho/read/macho_chained.h"

struct macho_imports {
    struct macho_import *v;
    size_t n;
};

/* One dyld_chained_starts_in_segment. */
struct macho_starts {
    uint64_t at; /* offset in the payload */
    uint32_t segment, size, max_valid_pointer;
    uint16_t page_size, format, page_count;
    uint64_t segment_offset;
    struct exti_span page_start;
};
struct macho_chain_table {
    struct exti_span s;
    uint32_t starts_offset, imports_offset, symbols_offset, imports_format;
    struct macho_imports imports;
    struct macho_starts *starts;
    size_t starts_count;
};

/* Decodes the tables.  Reports breaches of dyld's rules; *ok is false then. */
int exti__macho_chain_open(struct macho_check *c, const struct macho_file *f,
                           struct macho_chain_table *t, bool *ok, struct exti_error *err);
void exti__macho_chain_close(struct macho_chain_table *t);

/* Walks every chain; calls `rebased`, unless it is NULL, with the slice offset of each rebased
 * slot. */
int exti__macho_chain_walk(struct macho_check *c, const struct macho_file *f,
                           const struct macho_chain_table *t,
                           int (*rebased)(void *user, uint64_t at, struct exti_error *err),
                           void *user, struct exti_error *err);

int exti__macho_rule_chains(struct macho_check *c, const struct macho_file *f,
                            struct exti_error *err);

#endif
