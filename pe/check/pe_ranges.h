/* Ranges of file offsets. */
#ifndef PE_CHECK_PE_RANGES_H
#define PE_CHECK_PE_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* [at, end) */
struct pe_range {
    uint64_t at, end;
};
struct pe_ranges {
    struct pe_range *v; /* owned */
    size_t n, cap;
};

int exti__pe_range_add(struct pe_ranges *r, uint64_t at, uint64_t size, struct exti_error *err);
/* Sorts and merges. */
void exti__pe_ranges_sort(struct pe_ranges *r);
/* Whether sorted ranges overlap [at, end). */
bool exti__pe_ranges_meet(const struct pe_ranges *r, uint64_t at, uint64_t end);

#endif
