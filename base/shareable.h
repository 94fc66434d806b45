/* What a copy of a library need not have itself: code and constants that its loader maps from the
 * original, as the system's loader maps them for every process, and data that it reads there. */
#ifndef BASE_SHAREABLE_H
#define BASE_SHAREABLE_H

#include <stdbool.h>

#include "base/plan.h"
#include "base/unread.h"

#define EXTI_SHARED_MAX 4

/* What a format tells of one file. */
struct exti_shareable {
    struct exti_range segments[EXTI_SHARED_MAX]; /* that are in memory as they are in the file */
    size_t count;
    /* Of each segment, how many bytes of the file from its first on are its own, or nobody's: an
     * edit may let it grow into the rest of its last page. */
    size_t own[EXTI_SHARED_MAX];
    struct exti_unread holes; /* bytes of the segments that no loader looks at */
    const char *none;         /* why there are no segments; NULL: there are some */
    bool early;               /* loaders call functions of the file while they bind references */
};

/* Gives the holes in the segments that a sealed plan leaves as they are, and if there are some what
 * the plan's cuts leave out, ordered by offset.  Whoever loads the copy is to map each segment that
 * has holes, and to read what is loaded of the cuts; the others' parts are `unloaded` as well. */
void exti__shareable_left(const struct exti_shareable *s, const struct exti_plan *plan,
                          struct exti_unread *left_out, struct exti_unread *unloaded);

/* Adds a part, for which there is room, before those that begin behind it. */
void exti__parts_add(struct exti_unread *parts, const struct exti_range *part);

/* Takes away those of `gone`. */
void exti__parts_drop(struct exti_unread *parts, const struct exti_unread *gone);

bool exti__parts_same(const struct exti_unread *a, const struct exti_unread *b);
uint64_t exti__parts_size(const struct exti_unread *parts);

/* The bytes before the `i`th part, or those after the last up to `end`. */
struct exti_range exti__parts_between(const struct exti_unread *parts, size_t i, size_t end);

/* Whether the byte at `at` is in one of the parts; *end, an end past it, becomes the place where
 * this changes if that comes first. */
bool exti__parts_have(const struct exti_unread *parts, size_t at, size_t *end);

#endif
