/* The graph of natives of a collection: those that links lead to, and all that these refer to. */
#include "link/collection.h"
#include "link/records.h"

#include "base/mem.h"

/* The base that a link adds does not hold its native: the host's object does, which the collection
 * is about.  A native whose former proxy has not been told of has a base too many, and is alive. */
static uint32_t add_link(struct exti_links *links, uint32_t i)
{
    const struct link *l = &links->table.links[i];
    const int64_t own = links->collection.others_live ? 0 : exti__link_base(links, l);

    return exti__graph_add(&links->collection.graph, l->native, own, i);
}

static int found(void *native, void *arg)
{
    struct exti_links *links = arg;
    const uint32_t i = exti__link_find_native(&links->table, native);

    if (i != NO_LINK && exti__link_is_live(&links->table.links[i]))
        add_link(links, i);
    else
        exti__graph_add(&links->collection.graph, native, 0, NO_LINK);
    return 0;
}

/* Follows the references of nodes that were not followed yet, up to the budget; 0: all. */
static uint32_t follow(struct exti_links *links, uint32_t followed, size_t budget)
{
    struct graph *g = &links->collection.graph;

    while (followed < g->count && (!budget || followed < budget))
        exti__graph_follow(g, followed++, found, links);
    return followed;
}

static bool leads_to_graph(const struct link *l)
{
    return exti__link_is_live(l) && !(l->state & LINK_REPLACED);
}

static void follow_links(struct exti_links *links)
{
    const uint32_t end = links->table.end, begin = links->cursor < end ? links->cursor : 0;
    struct graph *g = &links->collection.graph;
    uint32_t followed = 0;

    for (uint32_t k = 0; k < end && followed == g->count; k++) {
        const uint32_t i = begin + k < end ? begin + k : begin + k - end;

        links->cursor = i;
        if (leads_to_graph(&links->table.links[i]))
            add_link(links, i);
        followed = follow(links, followed, links->o.budget);
    }
    links->collection.whole = followed == g->count;
}

static void mark_held(struct graph *g)
{
    for (uint32_t n = 0; n < g->count; n++)
        if (g->nodes[n].held > 0)
            exti__graph_mark(g, n);
}

/* Without memory the graph is empty. */
static void settle(struct exti_links *links)
{
    struct collection *c = &links->collection;

    if (!c->graph.failed)
        c->circles = exti__calloc(1, sizeof *c->circles);
    if (c->circles && exti__graph_settle(&c->graph)) {
        mark_held(&c->graph);
        return;
    }
    exti__graph_free(&c->graph);
    c->whole = false;
}

void exti__collection_begin(struct exti_links *links)
{
    struct collection *c = &links->collection;

    c->begun = true;
    exti__graph_begin(&c->graph, &links->o.natives, links->o.user);
    if (!links->o.natives.traverse)
        return;
    follow_links(links);
    settle(links);
}

/* A native whose proxy was replaced may have two links that have died. */
static void add_died(struct exti_links *links, uint32_t i)
{
    const struct link *l = &links->table.links[i];
    const uint32_t node = exti__graph_find(&links->collection.graph, l->native);

    if (node != NO_NODE)
        links->collection.graph.nodes[node].held -= exti__link_base(links, l);
    else
        exti__graph_add(&links->collection.graph, l->native, exti__link_base(links, l), i);
}

bool exti__collection_of_died(struct exti_links *links, uint32_t first)
{
    struct collection *c = &links->collection;

    c->begun = c->others_live = true;
    exti__graph_begin(&c->graph, &links->o.natives, links->o.user);
    for (uint32_t i = first; i != NO_LINK; i = links->table.links[i].next)
        add_died(links, i);
    follow(links, 0, 0);
    settle(links);
    while (exti__graph_next_marked(&c->graph) != NO_NODE)
        ;
    return c->graph.count > 0;
}

void exti__collection_end(struct exti_links *links)
{
    exti__graph_free(&links->collection.graph);
    exti__free(links->collection.circles);
    links->collection = (struct collection){0};
}
