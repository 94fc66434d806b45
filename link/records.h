/* Finding, making and ending records of links, in line: each takes a few loads and stores. */
#ifndef LINK_RECORDS_H
#define LINK_RECORDS_H

#include "link/table.h"

#define EMPTY 0u
#define DELETED 1u
#define FIRST 2u /* a slot's number is that of the link and this */

/* ---- slots of an index ---------------------------------------------------------------------- */

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

static inline void put(struct link_index *x, uint64_t h, uint32_t i)
{
    uint32_t at = first_slot(x, h);

    while (x->slots[at] > DELETED)
        at = next_slot(x, at);
    x->used += x->slots[at] == EMPTY;
    x->slots[at] = slot_of(x, h, i);
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

static inline bool make_room(const struct link_table *t, struct link_index *x)
{
    return x->used < x->room || exti__link_make_slots(t, x);
}

/* ---- records --------------------------------------------------------------------------------- */

static inline uint32_t exti__link_find_native(const struct link_table *t, const void *native)
{
    const struct link_index *x = &t->by_native;
    const uint64_t h = hash((uintptr_t)native);
    uint32_t slot, i;

    for (uint32_t at = first_slot(x, h); (slot = x->slots[at]) != EMPTY; at = next_slot(x, at))
        if (has_hash(x, slot, h) && t->links[i = number_in(x, slot)].native == native)
            return i;
    return NO_LINK;
}

static inline uint32_t exti__link_find_host(const struct link_table *t, exti_host_word host)
{
    const struct link_index *x = &t->by_host;
    const uint64_t h = hash(host);
    uint32_t slot, i;

    for (uint32_t at = first_slot(x, h); (slot = x->slots[at]) != EMPTY; at = next_slot(x, at))
        if (has_hash(x, slot, h) && t->links[i = number_in(x, slot)].host == host)
            return i;
    return NO_LINK;
}

static inline bool make_record(struct link_table *t)
{
    return t->unused != NO_LINK || t->end < t->capacity || exti__link_make_records(t);
}

static inline uint32_t take_record(struct link_table *t)
{
    const uint32_t i = t->unused;

    if (i == NO_LINK)
        return t->end++;
    t->unused = t->links[i].next;
    return i;
}

/* Adds a record with these bits beside LINK_USED; by native, and by host if it is host first.
 * NO_LINK: without memory, and then nothing has changed. */
static inline uint32_t exti__link_add(struct link_table *t, exti_host_word host, void *native,
                                      uint32_t state)
{
    uint32_t i;

    if (!make_record(t) || !make_room(t, &t->by_native) ||
        ((state & LINK_HOST_FIRST) && !make_room(t, &t->by_host)))
        return NO_LINK;
    i = take_record(t);
    t->links[i] = (struct link){
        .host = host, .native = native, .state = state | LINK_USED, .next = NOT_LISTED};
    t->live++;
    put(&t->by_native, hash((uintptr_t)native), i);
    if (state & LINK_HOST_FIRST)
        put(&t->by_host, hash(host), i);
    return i;
}

/* The native does not lead to this record any more. */
static inline void exti__link_replace(struct link_table *t, uint32_t i)
{
    take(&t->by_native, hash((uintptr_t)t->links[i].native), i);
    t->links[i].state |= LINK_REPLACED;
}

/* Takes the record from the indices; the caller has its number to use or to give back. */
static inline void exti__link_unlist(struct link_table *t, uint32_t i)
{
    struct link *l = &t->links[i];

    if (!(l->state & LINK_REPLACED))
        take(&t->by_native, hash((uintptr_t)l->native), i);
    if ((l->state & LINK_HOST_FIRST) && !t->by_host.stale)
        take(&t->by_host, hash(l->host), i);
    l->state = 0;
    t->live--;
}

static inline void exti__link_give_back(struct link_table *t, uint32_t i)
{
    t->links[i] = (struct link){.next = t->unused};
    t->unused = i;
}

#endif
