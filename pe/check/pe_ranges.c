/* Ranges of file offsets. */
#include "pe/check/pe_ranges.h"

#include <stdlib.h>

#include "base/mem.h"

int exti__pe_range_add(struct pe_ranges *r, uint64_t at, uint64_t size, struct exti_error *err)
{
    struct pe_range *p;

    if (!size)
        return 0;
    p = exti__array_room(r->v, r->n, &r->cap, sizeof *p);
    if (!p)
        return exti__fail_nomem(err);
    r->v = p;
    r->v[r->n++] = (struct pe_range){at, at + size};
    return 0;
}

static int by_start(const void *a, const void *b)
{
    const struct pe_range *x = a, *y = b;

    return (x->at > y->at) - (x->at < y->at);
}

void exti__pe_ranges_sort(struct pe_ranges *r)
{
    size_t kept = 0;

    if (r->n)
        qsort(r->v, r->n, sizeof *r->v, by_start);
    for (size_t i = 0; i < r->n; i++)
        if (kept && r->v[i].at <= r->v[kept - 1].end) {
            if (r->v[i].end > r->v[kept - 1].end)
                r->v[kept - 1].end = r->v[i].end;
        } else {
            r->v[kept++] = r->v[i];
        }
    r->n = kept;
}

bool exti__pe_ranges_meet(const struct pe_ranges *r, uint64_t at, uint64_t end)
{
    size_t low = 0, high = r->n;

    while (low < high) {
        const size_t mid = low + (high - low) / 2;

        if (r->v[mid].end <= at)
            low = mid + 1;
        else
            high = mid;
    }
    return low < r->n && r->v[low].at < end;
}
