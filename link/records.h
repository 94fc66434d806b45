/* Finding, making and ending records of links, in line: each takes a few loads and stores. */
#ifndef LINK_RECORDS_H
#define LINK_RECORDS_H

#include "link/slots.h"

/* ---- finding --------------------------------------------------------------------------------- */

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

/* ---- making and ending ----------------------------------------------------------------------- */

static inline bool make_room(const struct link_table *t, struct link_index *x)
{
    return x->used < x->room || exti__link_make_slots(t, x);
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

    if (!(l->state & LINK_REPLACED) && !t->by_native.stale)
        take(&t->by_native, hash((uintptr_t)l->native), i);
    if ((l->state & LINK_HOST_FIRST) && !t->by_host.stale)
        take(&t->by_host, hash(l->host), i);
    l->state = 0;
    t->live--;
}

static inline void exti__link_give_back(struct link_table *t, uint32_t i)
{
    t->links[i].state = 0;
    t->links[i].next = t->unused;
    t->unused = i;
}

#endif
