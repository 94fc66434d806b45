#include "loader/track/zone.h"

/* As the GNU C library: before the first change, the first standard type. */
static const struct exti_zone_type *first_type(const struct exti_zone *z)
{
    for (size_t i = 0; i < z->type_count; i++)
        if (!z->types[i].dst)
            return &z->types[i];
    return &z->types[0];
}

const struct exti_zone_type *exti__zone_at(const struct exti_zone *z, int64_t at)
{
    size_t lo = 0, hi = z->count;

    if (z->has_rule && (!z->count || at >= z->times[z->count - 1]))
        return exti__zone_rule_at(&z->rule, at);
    if (!z->count || at < z->times[0])
        return first_type(z);
    while (hi - lo > 1) {
        const size_t mid = lo + (hi - lo) / 2;

        if (z->times[mid] <= at)
            lo = mid;
        else
            hi = mid;
    }
    return &z->types[z->kinds[lo]];
}

void exti__zone_last(const struct exti_zone *z, const struct exti_zone_type *last[2])
{
    last[0] = last[1] = NULL;
    for (size_t i = z->count; i-- > 0 && !(last[0] && last[1]);) {
        const struct exti_zone_type *t = &z->types[z->kinds[i]];

        if (!last[t->dst])
            last[t->dst] = t;
    }
    if (!z->count && z->has_rule) {
        last[0] = &z->rule.types[0];
        last[1] = &z->rule.types[1];
    }
    if (!last[0])
        last[0] = last[1] ? last[1] : first_type(z);
    if (!last[1])
        last[1] = last[0];
}

/* Looks for a time near `at` with the wanted kind of time, whose offset is what the caller means:
 * in steps shorter than any such time has been, and up to some seven years away, as the GNU C
 * library does. */
static const struct exti_zone_type *near_type(const struct exti_zone *z, int64_t at, bool dst)
{
    const int64_t step = 601200, farthest = INT64_C(229000000);

    for (int64_t delta = step; delta < farthest; delta += step)
        for (int side = -1; side <= 1; side += 2) {
            const struct exti_zone_type *t = exti__zone_at(z, at + side * delta);

            if (t->dst == dst)
                return t;
        }
    return NULL;
}

int64_t exti__zone_moment(const struct exti_zone *z, int64_t local, int dst)
{
    const struct exti_zone_type *t = exti__zone_at(z, local), *other;
    int64_t at = local - t->offset, later;

    other = exti__zone_at(z, at);
    if (other->offset != t->offset) {
        later = at;
        at = local - other->offset;
        t = exti__zone_at(z, at);
        /* Clocks have been put forward over the time: one of the two, by what is not asked for. */
        if (t->offset != other->offset)
            return (dst < 0 ? other->dst : other->dst != (dst > 0)) ? later : at;
        other = t;
    }
    if (dst < 0 || other->dst == (dst > 0))
        return at;
    t = near_type(z, at, dst > 0);
    /* Where there is none, an hour is the difference. */
    return t ? local - t->offset : at + (dst > 0 ? -3600 : 3600);
}
