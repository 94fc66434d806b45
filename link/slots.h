/* Slots of an index, in line. */
#ifndef LINK_SLOTS_H
#define LINK_SLOTS_H

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

static inline uint32_t slot_of(const struct link_index *x, uint64_t h, uint32_t i)
{
    return ((uint32_t)h >> x->bits << x->bits) | (i + FIRST);
}

/* Into a slot that is free, or was another link's with the same key. */
static inline void put_at(struct link_index *x, uint32_t at, uint64_t h, uint32_t i)
{
    x->used += x->slots[at] == EMPTY;
    x->slots[at] = slot_of(x, h, i);
}

static inline void put(struct link_index *x, uint64_t h, uint32_t i)
{
    uint32_t at = first_slot(x, h);

    while (x->slots[at] > DELETED)
        at = next_slot(x, at);
    put_at(x, at, h, i);
}

static inline void take(struct link_index *x, uint64_t h, uint32_t i)
{
    const uint32_t slot = slot_of(x, h, i);
    uint32_t at = first_slot(x, h);

    while (x->slots[at] != slot)
        at = next_slot(x, at);
    x->slots[at] = DELETED;
    /* A search that comes here would end at the next one. */
    while (x->slots[at] == DELETED && x->slots[next_slot(x, at)] == EMPTY) {
        x->slots[at] = EMPTY;
        x->used--;
        at = (at ? at : x->capacity) - 1;
    }
}

#endif
