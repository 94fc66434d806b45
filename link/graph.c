#include "link/graph.h"

#include <string.h>

#include "base/mem.h"

void exti__graph_begin(struct graph *g, const struct exti_natives *natives, void *user)
{
    *g = (struct graph){.natives = natives, .user = user};
}

void exti__graph_free(struct graph *g)
{
    exti__free(g->nodes);
    exti__free(g->slots);
    exti__free(g->work);
    *g = (struct graph){0};
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* The slot of the native, or the empty one that would be its. */
static uint32_t *slot_of(const struct graph *g, const void *native)
{
    const uint64_t h = (uint64_t)(uintptr_t)native * 0x9e3779b97f4a7c15u >> 32;
    uint32_t at = (uint32_t)(h * g->slot_capacity >> 32);

    while (g->slots[at] && g->nodes[g->slots[at] - 1].native != native)
        at = at + 1 == g->slot_capacity ? 0 : at + 1;
    return &g->slots[at];
}

/* Half of the slots stay empty. */
static bool make_room(struct graph *g)
{
    const uint32_t capacity = g->capacity * 2 + 32;
    struct graph_node *nodes;
    uint32_t *slots;

    if (g->count < g->capacity)
        return true;
    nodes =
        capacity < UINT32_MAX / 2 ? exti__realloc_array(g->nodes, capacity, sizeof *nodes) : NULL;
    if (!nodes)
        return false;
    g->nodes = nodes;
    slots = exti__calloc((size_t)capacity * 2, sizeof *slots);
    if (!slots)
        return false;
    exti__free(g->slots);
    g->slots = slots;
    g->slot_capacity = capacity * 2;
    g->capacity = capacity;
    for (uint32_t i = 0; i < g->count; i++)
        *slot_of(g, nodes[i].native) = i + 1;
    return true;
}

uint32_t exti__graph_find(const struct graph *g, const void *native)
{
    return g->count ? *slot_of(g, native) - 1 : NO_NODE; /* 0 - 1 */
}

uint32_t exti__graph_add(struct graph *g, void *native, int64_t own, uint32_t link)
{
    const uint32_t there = exti__graph_find(g, native);

    if (there != NO_NODE)
        return there;
    if (!make_room(g)) {
        g->failed = true;
        return NO_NODE;
    }
    g->nodes[g->count] = (struct graph_node){
        .native = native, .held = g->natives->count(g->user, native) - own, .link = link};
    *slot_of(g, native) = ++g->count;
    return g->count - 1;
}

/* ---- references ------------------------------------------------------------------------------ */

struct following {
    struct graph *g;
    exti_native_visit found;
    void *arg;
};

static int take_reference(void *native, void *arg)
{
    const struct following *f = arg;
    uint32_t node = exti__graph_find(f->g, native);

    if (node == NO_NODE) {
        f->found(native, f->arg);
        node = exti__graph_find(f->g, native);
    }
    if (node != NO_NODE)
        f->g->nodes[node].held--;
    return 0;
}

void exti__graph_follow(struct graph *g, uint32_t node, exti_native_visit found, void *arg)
{
    struct following f = {g, found, arg};

    g->natives->traverse(g->user, g->nodes[node].native, take_reference, &f);
}

/* ---- marks ----------------------------------------------------------------------------------- */

bool exti__graph_settle(struct graph *g)
{
    g->work = exti__realloc_array(NULL, g->count, sizeof *g->work);
    g->failed = g->failed || !g->work;
    return !g->failed;
}

/* Each node is on the work list once at most. */
void exti__graph_mark(struct graph *g, uint32_t node)
{
    if (g->nodes[node].alive)
        return;
    g->nodes[node].alive = true;
    g->work[g->work_count++] = node;
}

static int mark_referent(void *native, void *arg)
{
    struct graph *g = arg;
    const uint32_t node = exti__graph_find(g, native);

    if (node != NO_NODE)
        exti__graph_mark(g, node);
    return 0;
}

uint32_t exti__graph_next_marked(struct graph *g)
{
    uint32_t node;

    if (!g->work_count)
        return NO_NODE;
    node = g->work[--g->work_count];
    g->natives->traverse(g->user, g->nodes[node].native, mark_referent, g);
    return node;
}
