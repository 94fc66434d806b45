/* Finding, making and ending records of links, in line: each takes a few loads and stores. */
#ifndef LINK_RECORDS_H
#define LINK_RECORDS_H

#include "link/slots.h"

/* ---- finding --------------------------------------------------------------------------------- */

static inline bool has_key(const struct link_table *t, uint32_t i, uintptr_t key, bool native)
{
    return (native ? (uintptr_t)t->links[i].native : t->links[i].host) == key;
}

static inline uint32_t find(const struct link_table *t, uintptr_t key, bool native)
{
    const struct link_index *x = native ? &t->by_native : &t->by_host;
    const uint64_t h = hash(key);
    uint32_t slot;

    for (uint32_t at = first_slot(x, h); (slot = x->slots[at]) != EMPTY; at = next_slot(x, at))
        if (has_hash(x, slot, h) && has_key(t, number_in(x, slot), key, native))
            return number_in(x, slot);
    return NO_LINK;
}

static inline uint32_t exti__link_find_native(const struct link_table *t, const void *native)
{
    return find(t, (uintptr_t)native, true);
}

static inline uint32_t exti__link_find_host(const struct link_table *t, exti_host_word host)
{
    return find(t, host, false);
}

/* The slot in which a key is, or which a link with it would take, and the link. */
struct link_place {
    uint32_t at, link; /* NO_LINK: it is not there */
};

static inline struct link_place place(const struct link_table *t, uintptr_t key, bool native)
{
    const struct link_index *x = native ? &t->by_native : &t->by_host;
    const uint64_t h = hash(key);
    uint32_t slot, at, unused = UINT32_MAX;

    for (at = first_slot(x, h); (slot = x->slots[at]) != EMPTY; at = next_slot(x, at)) {
        if (has_hash(x, slot, h) && has_key(t, number_in(x, slot), key, native))
            return (struct link_place){at, number_in(x, slot)};
        if (slot == DELETED && unused == UINT32_MAX)
            unused = at;
    }
    return (struct link_place){unused == UINT32_MAX ? at : unused, NO_LINK};
}

/* There must be room for one more; it is valid until anything changes. */
static inline struct link_place exti__link_place_native(const struct link_table *t,
                                                        const void *native)
{
    return place(t, (uintptr_t)native, true);
}

static inline struct link_place exti__link_place_host(const struct link_table *t,
                                                      exti_host_word host)
{
    return place(t, host, false);
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

/* Room for one more with these bits.  False: without memory. */
static inline bool exti__link_make_room(struct link_table *t, uint32_t state)
{
    return make_record(t) && make_room(t, &t->by_native) &&
           (!(state & LINK_HOST_FIRST) || make_room(t, &t->by_host));
}

/* Adds a record, for which there is room, with these bits beside LINK_USED: by native, where it may
 * take the place of another one, and by host if it is host first. */
static inline uint32_t exti__link_add(struct link_table *t, exti_host_word host, void *native,
                                      uint32_t state, uint32_t native_at, uint32_t host_at)
{
    const uint32_t i = take_record(t);

    t->links[i] = (struct link){
        .host = host, .native = native, .state = state | LINK_USED, .next = NOT_LISTED};
    t->live++;
    put_at(&t->by_native, native_at, hash((uintptr_t)native), i);
    if (state & LINK_HOST_FIRST)
        put_at(&t->by_host, host_at, hash(host), i);
    return i;
}

/* Takes the record from the indices; the caller says what it is from now on, or gives it back. */
static inline void exti__link_unlist(struct link_table *t, uint32_t i)
{
    const struct link *l = &t->links[i];

    if (!(l->state & LINK_REPLACED) && !t->by_native.stale)
        take(&t->by_native, hash((uintptr_t)l->native), i);
    if ((l->state & LINK_HOST_FIRST) && !t->by_host.stale)
        take(&t->by_host, hash(l->host), i);
    t->live--;
}

static inline void exti__link_give_back(struct link_table *t, uint32_t i)
{
    t->links[i].state = 0;
    t->links[i].next = t->unused;
    t->unused = i;
}

#endif
