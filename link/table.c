#include "link/slots.h"

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
    uint32_t left = t->live;

    memset(x->slots, 0, (size_t)x->capacity * sizeof *x->slots);
    x->used = 0;
    for (uint32_t i = 0; left > 0; i++) {
        left -= (t->links[i].state & LINK_USED) != 0;
        if (is_in(t, x, i))
            put(x, hash_in(t, x, i), i);
    }
}

static unsigned bits_for(uint32_t links)
{
    unsigned bits = 4;

    while (bits < 32 && (uint64_t)links + FIRST > (uint64_t)1 << bits)
        bits++;
    return bits;
}

static uint32_t count_in(const struct link_table *t, const struct link_index *x)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < t->end; i++)
        count += is_in(t, x, i);
    return count;
}

/* Of new slots, 16 of 25 are taken, and of all no more than three of four: a search looks at three
 * slots then, of one line of the cache mostly. */
bool exti__link_make_slots(const struct link_table *t, struct link_index *x)
{
    const uint64_t capacity = ((uint64_t)count_in(t, x) + 1) * 25 / 16 + LEAST_SLOTS;
    uint32_t *slots = capacity <= UINT32_MAX ? exti__calloc((size_t)capacity, sizeof *slots) : NULL;

    if (!slots)
        return false;
    free_slots(x);
    *x = (struct link_index){.slots = slots,
                             .capacity = (uint32_t)capacity,
                             .room = (uint32_t)(capacity * 3 / 4),
                             .bits = bits_for(t->capacity)};
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

/* Slots that have no bit for the largest number are made anew. */
static void widen(const struct link_table *t, struct link_index *x)
{
    if (x->bits < bits_for(t->capacity))
        x->room = 0;
}

bool exti__link_make_records(struct link_table *t)
{
    const uint32_t capacity = t->capacity + t->capacity / 8 + LEAST_LINKS;
    struct link *links;

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
    widen(t, &t->by_host);
    widen(t, &t->by_native);
    return true;
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

/* To find the slots of many is more work than to put the others into an empty index. */
void exti__link_moves_begin(struct link_table *t, uint32_t ending)
{
    t->by_host.stale = true;
    t->by_native.stale = ending > t->live / 2;
}

static void refresh(const struct link_table *t, struct link_index *x)
{
    if (x->stale && x->capacity)
        fill(t, x);
    x->stale = false;
}

void exti__link_moves_end(struct link_table *t)
{
    refresh(t, &t->by_host);
    refresh(t, &t->by_native);
}

size_t exti__link_table_memory(const struct link_table *t)
{
    return (size_t)t->capacity * sizeof *t->links +
           ((size_t)t->by_host.capacity + t->by_native.capacity) * sizeof *t->by_host.slots;
}
