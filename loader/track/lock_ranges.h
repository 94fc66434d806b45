/* The byte ranges of one file that one owner has locked.  Pure: the caller serialises. */
#ifndef LOADER_TRACK_LOCK_RANGES_H
#define LOADER_TRACK_LOCK_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum exti_lock_kind { EXTI_LOCK_NONE, EXTI_LOCK_READ, EXTI_LOCK_WRITE };

/* The bytes from `start` to `end`, both included; INT64_MAX is the end of any file. */
struct exti_lock_range {
    int64_t start, end;
    enum exti_lock_kind kind;
};

struct exti_lock_ranges {
    struct exti_lock_range *list; /* owned; ascending, apart, none of them EXTI_LOCK_NONE */
    size_t count, cap;
};

/* Makes room for one exti__lock_ranges_set; false without memory. */
bool exti__lock_ranges_room(struct exti_lock_ranges *r);

/* Gives the bytes of `range` its kind, whatever they had before.  There is room. */
void exti__lock_ranges_set(struct exti_lock_ranges *r, const struct exti_lock_range *range);

/* The first range that another owner's lock `range` would conflict with, or NULL. */
const struct exti_lock_range *exti__lock_ranges_conflict(const struct exti_lock_ranges *r,
                                                         const struct exti_lock_range *range);

#endif
