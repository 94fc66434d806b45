/* What native code keeps in the collections of a host that marks. */
#include "base/mem.h"
#include "link/links.h"

/* ---- by the count alone ---------------------------------------------------------------------- */

static bool survives(const struct exti_links *links, const struct link *l)
{
    exti_host_word object = l->host; /* where it is now is told to the sweep */

    return links->o.marking.survives(links->o.user, &object) != 0;
}

static size_t keep(const struct exti_links *links, const struct link *l)
{
    if (survives(links, l))
        return 0;
    links->o.marking.keep(links->o.user, l->host);
    return 1;
}

/* A circle of natives that have no collector of their own is found by its link: so the proxy stays
 * until a collection looks for circles. */
static size_t keep_held(const struct exti_links *links, const struct link *l)
{
    const bool keeps = (l->state & LINK_HOST_FIRST) || links->o.natives.clear;

    if (!keeps || links->o.natives.count(links->o.user, l->native) == exti__link_base(links, l))
        return 0;
    return keep(links, l);
}

static size_t trace_young(const struct exti_links *links)
{
    const struct link *all = links->table.links;
    size_t kept = 0;

    for (uint32_t i = links->young; i != NO_LINK; i = all[i].next)
        kept += keep_held(links, &all[i]);
    return kept;
}

/* Those of which the graph knows nothing. */
static size_t trace_others(const struct exti_links *links)
{
    const struct link_table *t = &links->table;
    size_t kept = 0;

    for (uint32_t i = 0; i < t->end; i++)
        if (exti__link_is_live(&t->links[i]) &&
            exti__graph_find(&links->collection.graph, t->links[i].native) == NO_NODE)
            kept += keep_held(links, &t->links[i]);
    return kept;
}

/* ---- by the graph of natives ----------------------------------------------------------------- */

static uint32_t add_link(struct exti_links *links, uint32_t i)
{
    const struct link *l = &links->table.links[i];

    return exti__graph_add(&links->collection.graph, l->native, exti__link_base(links, l), i);
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

/* Follows the references of nodes that were not followed yet, up to the budget. */
static uint32_t follow(struct exti_links *links, uint32_t followed)
{
    struct graph *g = &links->collection.graph;
    const size_t budget = links->o.budget;

    while (followed < g->count && (!budget || followed < budget))
        exti__graph_follow(g, followed++, found, links);
    return followed;
}

static void fill_graph(struct exti_links *links)
{
    const uint32_t end = links->table.end, begin = links->cursor < end ? links->cursor : 0;
    struct graph *g = &links->collection.graph;
    uint32_t followed = 0;

    for (uint32_t k = 0; k < end && followed == g->count; k++) {
        const uint32_t i = begin + k < end ? begin + k : begin + k - end;

        links->cursor = i;
        if (exti__link_is_live(&links->table.links[i]))
            add_link(links, i);
        followed = follow(links, followed);
    }
    links->collection.whole = followed == g->count;
}

static void begin(struct exti_links *links)
{
    struct collection *c = &links->collection;
    struct graph *g = &c->graph;

    c->begun = true;
    exti__graph_begin(g, &links->o.natives, links->o.user);
    if (links->o.natives.traverse) {
        fill_graph(links);
        if (!g->failed)
            c->circles = exti__calloc(1, sizeof *c->circles);
        if (!c->circles || !exti__graph_settle(g)) {
            exti__graph_free(g);
            c->whole = false;
        }
    }
    for (uint32_t n = 0; n < g->count; n++)
        if (g->nodes[n].held > 0)
            exti__graph_mark(g, n);
}

void exti__collection_end(struct exti_links *links)
{
    exti__graph_free(&links->collection.graph);
    exti__free(links->collection.circles);
    links->collection = (struct collection){0};
}

/* The host keeps the objects of shells that are alive. */
static size_t keep_marked(struct exti_links *links)
{
    struct graph *g = &links->collection.graph;
    size_t kept = 0;

    for (uint32_t n; (n = exti__graph_next_marked(g)) != NO_NODE;) {
        const uint32_t i = g->nodes[n].link;

        if (i != NO_LINK && (links->table.links[i].state & LINK_HOST_FIRST))
            kept += keep(links, &links->table.links[i]);
    }
    return kept;
}

static size_t trace_graph(struct exti_links *links)
{
    struct graph *g = &links->collection.graph;
    size_t kept = keep_marked(links);

    for (uint32_t n = 0; n < g->count; n++) {
        const uint32_t i = g->nodes[n].link;

        if (g->nodes[n].alive || i == NO_LINK || !survives(links, &links->table.links[i]))
            continue;
        exti__graph_mark(g, n);
        kept += keep_marked(links);
    }
    return kept;
}

size_t exti_links_trace(struct exti_links *links, enum exti_links_part part)
{
    size_t kept;

    if (part == EXTI_LINKS_YOUNG)
        return trace_young(links);
    if (!links->collection.begun)
        begin(links);
    kept = trace_graph(links);
    if (!links->collection.whole)
        kept += trace_others(links);
    return kept;
}

void exti_link_marked(struct exti_links *links, const void *native)
{
    struct graph *g = &links->collection.graph;
    const uint32_t node = exti__graph_find(g, native);

    if (node != NO_NODE)
        exti__graph_mark(g, node);
}
