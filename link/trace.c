/* What native code keeps in the collections of a host that marks. */
#include "link/collection.h"

/* ---- by the count alone ---------------------------------------------------------------------- */

static bool survives(const struct exti_links *links, const struct link *l)
{
    exti_host_word object = l->host; /* where it is now is told to the sweep */

    return (l->state & LINK_STRONG) || links->o.marking.survives(links->o.user, &object) != 0;
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

    if (!links->o.marking.keep)
        return 0;
    if (part == EXTI_LINKS_YOUNG)
        return trace_young(links); /* none where none are listed */
    if (!links->collection.begun)
        exti__collection_begin(links);
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
