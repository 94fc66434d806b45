/* Dead circles of natives that have no collector of their own. */
#include "base/mem.h"
#include "link/collection.h"
#include "link/records.h"

/* Whether one of the dead is held, which only others of them can do. */
static bool has_circle(const struct exti_links *links, const struct graph *g)
{
    for (uint32_t n = 0; n < g->count; n++) {
        const struct graph_node *node = &g->nodes[n];

        if (!node->alive && node->link != NO_LINK &&
            links->o.natives.count(links->o.user, node->native) !=
                exti__link_base(links, &links->table.links[node->link]))
            return true;
    }
    return false;
}

static void end_link(struct exti_links *links, uint32_t i)
{
    const struct link *l = &links->table.links[i];

    links->o.natives.add(links->o.user, l->native, -exti__link_base(links, l));
    exti__link_unlist(&links->table, i);
    if (links->collection.others_live) /* it is on the list of those that have died */
        links->table.links[i].state = 0;
    else
        exti__link_give_back(&links->table, i);
}

/* PEP 442: finalisers of all come before any of them is cleared.  So those that nobody holds go
 * with the others, as their finalisers may use what is in a circle. */
void exti__circles_take(struct exti_links *links)
{
    struct graph *g = &links->collection.graph;
    struct circles *c = links->collection.circles;

    if (!links->o.natives.clear || !has_circle(links, g))
        return;
    *c = (struct circles){.next = links->circles, .nodes = g->nodes};
    for (uint32_t n = 0; n < g->count; n++) {
        const struct graph_node node = g->nodes[n];

        if (node.alive)
            continue;
        if (node.link != NO_LINK)
            end_link(links, node.link);
        links->o.natives.add(links->o.user, node.native, 1);
        c->nodes[c->count++] = node;
    }
    links->circles = c;
    links->collection.circles = NULL;
    g->nodes = NULL;
}

/* The reference that we have had of each goes. */
static void free_circles(struct exti_links *links, struct circles *c)
{
    for (uint32_t n = 0; n < c->count; n++)
        links->o.natives.add(links->o.user, c->nodes[n].native, -1);
    exti__free(c->nodes);
    exti__free(c);
}

void exti__circles_free(struct exti_links *links)
{
    while (links->circles) {
        struct circles *c = links->circles;

        links->circles = c->next;
        free_circles(links, c);
    }
}

/* ---- taking apart ---------------------------------------------------------------------------- */

static int not_found(void *native, void *arg)
{
    (void)native;
    (void)arg;
    return 0;
}

/* What is held by others than these natives, and all that it refers to, was revived by a
 * finaliser, or has been found alive by it.  False without memory. */
static bool mark_revived(struct exti_links *links, const struct circles *c, struct graph *g)
{
    exti__graph_begin(g, &links->o.natives, links->o.user);
    for (uint32_t n = 0; n < c->count; n++)
        exti__graph_add(g, c->nodes[n].native, 1, NO_LINK);
    if (g->failed || !exti__graph_settle(g))
        return false;
    for (uint32_t n = 0; n < g->count; n++)
        exti__graph_follow(g, n, not_found, NULL);
    for (uint32_t n = 0; n < g->count; n++)
        if (g->nodes[n].held > 0)
            exti__graph_mark(g, n);
    while (exti__graph_next_marked(g) != NO_NODE)
        ;
    return true;
}

static size_t clear_dead(struct exti_links *links, const struct graph *g)
{
    const struct exti_natives *n = &links->o.natives;
    size_t dead = 0;

    for (uint32_t i = 0; i < g->count; i++)
        if (!g->nodes[i].alive) {
            n->clear(links->o.user, g->nodes[i].native);
            dead++;
        }
    return dead;
}

/* Adds how many were dead.  False without memory: nothing was cleared. */
static bool take_apart(struct exti_links *links, const struct circles *c, size_t *dead)
{
    const struct exti_natives *n = &links->o.natives;
    struct graph g;
    bool known;

    for (uint32_t i = 0; i < c->count; i++)
        n->clear_weak(links->o.user, c->nodes[i].native);
    for (uint32_t i = 0; i < c->count; i++)
        n->finalise(links->o.user, c->nodes[i].native);
    known = mark_revived(links, c, &g);
    if (known)
        *dead += clear_dead(links, &g);
    exti__graph_free(&g);
    for (uint32_t i = 0; known && i < c->count; i++)
        n->release(links->o.user, c->nodes[i].native);
    return known;
}

size_t exti_links_clear_circles(struct exti_links *links)
{
    size_t dead = 0;

    /* Code of natives may collect, and so find more. */
    while (links->circles) {
        struct circles *c = links->circles;

        links->circles = c->next;
        if (!take_apart(links, c, &dead)) {
            c->next = links->circles;
            links->circles = c;
            break;
        }
        exti__free(c->nodes);
        exti__free(c);
    }
    return dead;
}
