#include "link/find.h"

#include <string.h>

#include "base/mem.h"

#define LEAST_SLOTS 16u
#define LEAST_LINKS 8u
#define MOST_LINKS (1u << 30)

/* ---- indices --------------------------------------------------------------------------------- */

/* So that a search need not ask whether there are slots. */
static uint32_t no_slot;
static const struct link_index nothing = {.slots = &no_slot, .bits = 1};

static void free_slots(struct link_index *x)
{
    if (x->slots != &no_slot)
        exti__free(x->slots);
}

static uint32_t slot_of(const struct link_index *x, uint64_t h, uint32_t i)
{
    return ((uint32_t)h >> x->bits << x->bits) | (i + FIRST);
}

static void put(struct link_index *x, uint64_t h, uint32_t i)
{
    uint32_t at = first_slot(x, h);

    while (x->slots[at] > DELETED)
        at = next_slot(x, at);
    x->used += x->slots[at] == EMPTY;
    x->live++;
    x->slots[at] = slot_of(x, h, i);
}

static void take(struct link_index *x, uint64_t h, uint32_t i)
{
    const uint32_t slot = slot_of(x, h, i);
    uint32_t at = first_slot(x, h);

    while (x->slots[at] != slot)
        at = next_slot(x, at);
    x->slots[at] = DELETED;
    x->live--;
    /* A search that comes here would end at the next one. */
    while (x->slots[at] == DELETED && x->slots[next_slot(x, at)] == EMPTY) {
        x->slots[at] = EMPTY;
        x->used--;
        at = (at ? at : x->capacity) - 1;
    }
}

/* Three of four: a search looks at three slots then, of one line of the cache mostly. */
static bool has_room(const struct link_index *x)
{
    return (uint64_t)x->used + 1 <= (uint64_t)x->capacity * 3 / 4;
}

/* Links that move leave deleted slots.  An eighth of all slots is what may gather before they are
 * swept out, which therefore costs each move a few steps. */
static bool has_room_for_moves(const struct link_index *x)
{
    return (uint64_t)x->used + 1 <= (uint64_t)x->capacity * 7 / 8;
}

/* ---- which keys an index has ----------------------------------------------------------------- */

static bool is_in(const struct link_table *t, const struct link_index *x, uint32_t i)
{
    const uint32_t state = t->links[i].state;

    if (x == &t->by_native)
        return (state & (LINK_USED | LINK_REPLACED)) == LINK_USED;
    return (state & (LINK_USED | LINK_HOST_FIRST)) == (LINK_USED | LINK_HOST_FIRST);
}

static uint64_t hash_in(const struct link_table *t, const struct link_index *x, uint32_t i)
{
    const struct link *l = &t->links[i];

    return hash(x == &t->by_native ? (uintptr_t)l->native : l->host);
}

static void fill(const struct link_table *t, struct link_index *x)
{
    memset(x->slots, 0, (size_t)x->capacity * sizeof *x->slots);
    x->used = x->live = 0;
    for (uint32_t i = 0; i < t->end; i++)
        if (is_in(t, x, i))
            put(x, hash_in(t, x, i), i);
}

static unsigned bits_for(uint32_t links)
{
    unsigned bits = 4;

    while (bits < 32 && (uint64_t)links + FIRST > (uint64_t)1 << bits)
        bits++;
    return bits;
}

/* Makes room for one more link.  Of new slots, 16 of 25 are taken. */
static bool make_room(const struct link_table *t, struct link_index *x)
{
    const unsigned bits = bits_for(t->capacity);
    const uint64_t capacity = ((uint64_t)x->live + 1) * 25 / 16 + LEAST_SLOTS;
    uint32_t *slots;

    if (bits == x->bits && has_room(x))
        return true;
    slots = capacity <= UINT32_MAX ? exti__calloc((size_t)capacity, sizeof *slots) : NULL;
    if (!slots)
        return false;
    free_slots(x);
    *x = (struct link_index){.slots = slots, .capacity = (uint32_t)capacity, .bits = bits};
    fill(t, x);
    return true;
}

/* ---- records --------------------------------------------------------------------------------- */

void exti__link_table_begin(struct link_table *t)
{
    *t = (struct link_table){.unused = NO_LINK, .by_host = nothing, .by_native = nothing};
    pthread_mutex_init(&t->moving, NULL);
}

void exti__link_table_free(struct link_table *t)
{
    exti__free(t->links);
    free_slots(&t->by_host);
    free_slots(&t->by_native);
    pthread_mutex_destroy(&t->moving);
}

static bool make_record(struct link_table *t)
{
    const uint32_t capacity = t->capacity + t->capacity / 8 + LEAST_LINKS;
    struct link *links;

    if (t->unused != NO_LINK || t->end < t->capacity)
        return true;
    if (capacity > MOST_LINKS)
        return false;
    pthread_mutex_lock(&t->moving);
    links = exti__realloc_array(t->links, capacity, sizeof *links);
    if (links)
        t->links = links;
    pthread_mutex_unlock(&t->moving);
    if (!links)
        return false;
    t->capacity = capacity;
    return true;
}

static uint32_t take_record(struct link_table *t)
{
    const uint32_t i = t->unused;

    if (i == NO_LINK)
        return t->end++;
    t->unused = t->links[i].next;
    return i;
}

uint32_t exti__link_add(struct link_table *t, exti_host_word host, void *native, uint32_t state)
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

void exti__link_replace(struct link_table *t, uint32_t i)
{
    take(&t->by_native, hash((uintptr_t)t->links[i].native), i);
    t->links[i].state |= LINK_REPLACED;
}

void exti__link_unlist(struct link_table *t, uint32_t i)
{
    struct link *l = &t->links[i];

    if (!(l->state & LINK_REPLACED))
        take(&t->by_native, hash((uintptr_t)l->native), i);
    if (l->state & LINK_HOST_FIRST)
        take(&t->by_host, hash(l->host), i);
    l->state = 0;
    t->live--;
}

void exti__link_give_back(struct link_table *t, uint32_t i)
{
    t->links[i] = (struct link){.next = t->unused};
    t->unused = i;
}

uint32_t exti__link_find_native(const struct link_table *t, const void *native)
{
    return find_native(t, native);
}

uint32_t exti__link_find_host(const struct link_table *t, exti_host_word host)
{
    return find_host(t, host);
}

void exti__link_moved(struct link_table *t, uint32_t i, exti_host_word host)
{
    struct link_index *x = &t->by_host;
    struct link *l = &t->links[i];

    if ((l->state & LINK_HOST_FIRST) && host != l->host) {
        take(x, hash(l->host), i);
        l->host = host;
        put(x, hash(host), i);
        if (!has_room_for_moves(x))
            fill(t, x);
    }
    l->host = host;
}

void exti__link_many_moved(struct link_table *t)
{
    if (t->by_host.capacity)
        fill(t, &t->by_host);
}

size_t exti__link_table_memory(const struct link_table *t)
{
    return (size_t)t->capacity * sizeof *t->links +
           ((size_t)t->by_host.capacity + t->by_native.capacity) * sizeof *t->by_host.slots;
}
