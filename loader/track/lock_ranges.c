#include "loader/track/lock_ranges.h"

#include <string.h>

#include "base/mem.h"

/* Cutting a range in two and putting another between its parts takes two more. */
bool exti__lock_ranges_room(struct exti_lock_ranges *r)
{
    struct exti_lock_range *list;

    if (r->count + 2 <= r->cap)
        return true;
    list = exti__array_room(r->list, r->cap, &r->cap, sizeof *list);
    if (list)
        r->list = list;
    return list != NULL;
}

/* Replaces `old` ranges from index `at` on by `n` others. */
static void replace_ranges(struct exti_lock_ranges *r, size_t at, size_t old,
                           const struct exti_lock_range *by, size_t n)
{
    struct exti_lock_range *p = r->list + at;

    memmove(p + n, p + old, (r->count - at - old) * sizeof *p);
    if (n)
        memcpy(p, by, n * sizeof *p);
    r->count = r->count - old + n;
}

void exti__lock_ranges_set(struct exti_lock_ranges *r, const struct exti_lock_range *range)
{
    struct exti_lock_range now = *range, left, right, by[3];
    size_t first = 0, end, n = 0;

    /* Those that overlap or touch: touching ones of one kind become one. */
    while (first < r->count && r->list[first].end < now.start - 1)
        first++;
    for (end = first; end < r->count && r->list[end].start - 1 <= now.end; end++)
        ;
    left = first < end ? r->list[first] : now;
    right = first < end ? r->list[end - 1] : now;
    if (left.start < now.start && left.kind == now.kind)
        now.start = left.start;
    else if (left.start < now.start)
        by[n++] = (struct exti_lock_range){
            left.start, left.end < now.start ? left.end : now.start - 1, left.kind};
    if (right.end > now.end && right.kind == now.kind)
        now.end = right.end;
    if (now.kind != EXTI_LOCK_NONE)
        by[n++] = now;
    if (right.end > now.end)
        by[n++] = (struct exti_lock_range){right.start > now.end ? right.start : now.end + 1,
                                           right.end, right.kind};
    replace_ranges(r, first, end - first, by, n);
}

const struct exti_lock_range *exti__lock_ranges_conflict(const struct exti_lock_ranges *r,
                                                         const struct exti_lock_range *range)
{
    for (size_t i = 0; i < r->count && r->list[i].start <= range->end; i++)
        if (r->list[i].end >= range->start &&
            (r->list[i].kind == EXTI_LOCK_WRITE || range->kind == EXTI_LOCK_WRITE))
            return &r->list[i];
    return NULL;
}
