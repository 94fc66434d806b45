/* Looking up links, in line: it takes a few instructions and two loads. */
#ifndef LINK_FIND_H
#define LINK_FIND_H

#include "link/table.h"

#define EMPTY 0u
#define DELETED 1u
#define FIRST 2u /* a slot's number is that of the link and this */

/* Knuth, The Art of Computer Programming, 6.4: multiplicative, by the golden ratio.  The upper half
 * is well mixed. */
static inline uint64_t hash(uintptr_t key)
{
    return (uint64_t)key * 0x9e3779b97f4a7c15u;
}

static inline uint32_t first_slot(const struct link_index *x, uint64_t h)
{
    return (uint32_t)((h >> 32) * x->capacity >> 32);
}

static inline uint32_t next_slot(const struct link_index *x, uint32_t at)
{
    return ++at == x->capacity ? 0 : at;
}

static inline uint32_t number_in(const struct link_index *x, uint32_t slot)
{
    return (slot & ((1u << x->bits) - 1)) - FIRST;
}

static inline bool has_hash(const struct link_index *x, uint32_t slot, uint64_t h)
{
    return (slot ^ (uint32_t)h) >> x->bits == 0 && slot > DELETED;
}

static inline uint32_t find_native(const struct link_table *t, const void *native)
{
    const struct link_index *x = &t->by_native;
    const uint64_t h = hash((uintptr_t)native);
    uint32_t slot, i;

    for (uint32_t at = first_slot(x, h); (slot = x->slots[at]) != EMPTY; at = next_slot(x, at))
        if (has_hash(x, slot, h) && t->links[i = number_in(x, slot)].native == native)
            return i;
    return NO_LINK;
}

static inline uint32_t find_host(const struct link_table *t, exti_host_word host)
{
    const struct link_index *x = &t->by_host;
    const uint64_t h = hash(host);
    uint32_t slot, i;

    for (uint32_t at = first_slot(x, h); (slot = x->slots[at]) != EMPTY; at = next_slot(x, at))
        if (has_hash(x, slot, h) && t->links[i = number_in(x, slot)].host == host)
            return i;
    return NO_LINK;
}

#endif
