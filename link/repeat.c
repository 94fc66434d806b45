/* A circle through both heaps has a native that refers to a shell.  So the table keeps the shell's
 * object, and the host never finds the circle dead.  But if the host alone holds that native, its
 * references can be repeated in the host, and the table need not keep the object.  GraalPy does so.
 *
 * Native code gets at such natives only by way of one that is handed out. */
#include "link/repeat.h"

#include "base/mem.h"
#include "link/collection.h"
#include "link/strength.h"

/* What is known of a node that is not alive. */
struct part {
    exti_host_word word; /* its object, proxy or hub; 0: a hub that has not been made */
    uint32_t group;      /* a node of its group, and so on to the one that stands for all */
    uint32_t number;     /* of the group, in the one that stands for it */
    bool wanted;         /* likewise: a shell of the group is strong */
    bool failed;         /* likewise: a reference cannot be repeated */
};

struct repetition {
    struct exti_links *links;
    struct graph *graph;
    struct part *parts;
    uint32_t *work; /* nodes that have words, whose references are to be repeated */
    uint32_t work_count;
    uint32_t from;
};

/* ---- groups ---------------------------------------------------------------------------------- */

/* The node that stands for the group. */
static uint32_t group_of(struct part *parts, uint32_t n)
{
    while (parts[n].group != n)
        n = parts[n].group = parts[parts[n].group].group;
    return n;
}

static uint32_t group_number(const struct link *l)
{
    return l->state >> LINK_GROUP;
}

static bool is_member(const struct link *l, uint32_t group)
{
    return exti__link_is_live(l) && group_number(l) == group;
}

/* The objects are kept by the table before they are let go of by each other. */
static void undo_group(struct exti_links *links, uint32_t number)
{
    const struct repeated_group *g = &links->repeated.groups[number];
    const uint32_t *members = links->repeated.members + g->begin;
    struct link *all = links->table.links;

    for (uint32_t k = 0; k < g->count; k++)
        if (is_member(&all[members[k]], number) && (all[members[k]].state & LINK_HOST_FIRST))
            exti__link_strengthen(links, members[k]);
    for (uint32_t k = 0; k < g->count; k++)
        if (is_member(&all[members[k]], number)) {
            all[members[k]].state &= LINK_FLAGS;
            links->o.toggling.forget(links->o.user, all[members[k]].host);
        }
}

void exti__repeat_undo(struct exti_links *links, uint32_t i)
{
    const uint32_t number = group_number(&links->table.links[i]);

    if (number)
        undo_group(links, number);
}

void exti__repeat_free(struct exti_links *links)
{
    exti__free(links->repeated.groups);
    exti__free(links->repeated.members);
    links->repeated = (struct repeated){0};
}

void exti__repeat_undo_all(struct exti_links *links)
{
    for (uint32_t n = 1; n < links->repeated.count; n++)
        undo_group(links, n);
    exti__repeat_free(links);
}

/* ---- which groups there are ------------------------------------------------------------------ */

static int join(void *native, void *arg)
{
    struct repetition *r = arg;
    const uint32_t to = exti__graph_find(r->graph, native);
    uint32_t a, b;

    if (to == NO_NODE || r->graph->nodes[to].alive)
        return 0;
    a = group_of(r->parts, r->from);
    b = group_of(r->parts, to);
    r->parts[a > b ? a : b].group = a > b ? b : a;
    return 0;
}

static const struct link *link_of(const struct repetition *r, uint32_t n)
{
    const uint32_t i = r->graph->nodes[n].link;

    return r->graph->nodes[n].alive || i == NO_LINK ? NULL : &r->links->table.links[i];
}

static void find_groups(struct repetition *r)
{
    struct graph *g = r->graph;

    for (uint32_t n = 0; n < g->count; n++)
        r->parts[n] = (struct part){.group = n};
    for (r->from = 0; r->from < g->count; r->from++)
        if (!g->nodes[r->from].alive)
            g->natives->traverse(g->user, g->nodes[r->from].native, join, r);
    for (uint32_t n = 0; n < g->count; n++) {
        const struct link *l = link_of(r, n);

        if (l && (l->state & LINK_STRONG))
            r->parts[group_of(r->parts, n)].wanted = true;
    }
}

/* ---- repeating ------------------------------------------------------------------------------- */

static int repeat_one(void *native, void *arg)
{
    struct repetition *r = arg;
    const struct exti_toggling *host = &r->links->o.toggling;
    const uint32_t to = exti__graph_find(r->graph, native);
    const exti_host_word from = r->parts[r->from].word;
    struct part *group = &r->parts[group_of(r->parts, r->from)];

    if (to == NO_NODE || r->graph->nodes[to].alive || group->failed)
        return 0;
    if (r->parts[to].word) {
        group->failed = host->refer(r->links->o.user, from, r->parts[to].word) != 0;
        return 0;
    }
    r->parts[to].word = host->hub(r->links->o.user, from);
    group->failed = r->parts[to].word == 0;
    if (!group->failed)
        r->work[r->work_count++] = to;
    return 0;
}

/* A dead native without a link was found by way of those that have one, and is reached so here. */
static void repeat(struct repetition *r)
{
    struct graph *g = r->graph;

    for (uint32_t n = 0; n < g->count; n++) {
        const struct link *l = link_of(r, n);

        if (!l || !r->parts[group_of(r->parts, n)].wanted)
            continue;
        r->parts[n].word = l->host;
        r->work[r->work_count++] = n;
    }
    while (r->work_count) {
        r->from = r->work[--r->work_count];
        g->natives->traverse(g->user, g->nodes[r->from].native, repeat_one, r);
    }
}

/* ---- numbering ------------------------------------------------------------------------------- */

static uint32_t number_groups(struct repetition *r)
{
    uint32_t count = 0, begin = 0;
    struct repeated_group *groups = r->links->repeated.groups;

    for (uint32_t n = 0; n < r->graph->count; n++) {
        struct part *group = &r->parts[group_of(r->parts, n)];

        if (!link_of(r, n) || !group->wanted || group->failed)
            continue;
        if (!group->number)
            group->number = ++count;
        groups[group->number].count++;
    }
    for (uint32_t k = 1; k <= count; k++) {
        groups[k].begin = begin;
        begin += groups[k].count;
        groups[k].count = 0;
    }
    return count;
}

static void list_members(struct repetition *r)
{
    struct repeated *all = &r->links->repeated;
    const uint32_t count = number_groups(r);

    for (uint32_t n = 0; n < r->graph->count; n++) {
        const struct part *part = &r->parts[group_of(r->parts, n)];
        const uint32_t i = r->graph->nodes[n].link;

        if (link_of(r, n) && part->number) {
            all->members[all->groups[part->number].begin + all->groups[part->number].count++] = i;
            r->links->table.links[i].state |= part->number << LINK_GROUP;
        } else if (link_of(r, n) && part->failed) {
            r->links->o.toggling.forget(r->links->o.user, r->parts[n].word);
        }
    }
    all->count = count + 1; /* the first is none */
}

/* Makes the members weak that are on a list of strong links; returns the others. */
static uint32_t weaken_members(struct exti_links *links, uint32_t list, size_t *weak)
{
    struct link *all = links->table.links;
    uint32_t kept = NO_LINK;

    for (uint32_t i = list, next; i != NO_LINK; i = next) {
        next = all[i].next;
        if (group_number(&all[i])) {
            exti__link_weaken(links, i);
            ++*weak;
        } else {
            all[i].next = kept;
            kept = i;
        }
    }
    return kept;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Groups are numbered from 1, and have a number in what a link's state has beside its flags. */
static bool make_room(struct repetition *r)
{
    const size_t count = (size_t)r->graph->count + 1;
    struct repeated *all = &r->links->repeated;

    if (count >= UINT32_MAX >> LINK_GROUP)
        return false;
    r->parts = exti__realloc_array(NULL, count, sizeof *r->parts);
    r->work = exti__realloc_array(NULL, count, sizeof *r->work);
    all->groups = exti__calloc(count, sizeof *all->groups);
    all->capacity = count;
    all->members = exti__realloc_array(NULL, count, sizeof *all->members);
    return r->parts && r->work && all->groups && all->members;
}

size_t exti_links_weaken_circles(struct exti_links *links)
{
    struct repetition r = {.links = links, .graph = &links->collection.graph};
    size_t weak = 0;

    if (!links->o.toggling.refer)
        return 0;
    exti__repeat_undo_all(links);
    exti_links_scan(links, 0);
    exti__collection_begin(links);
    while (exti__graph_next_marked(r.graph) != NO_NODE)
        ;
    if (make_room(&r)) {
        find_groups(&r);
        repeat(&r);
        list_members(&r);
        links->strong = weaken_members(links, links->strong, &weak);
        links->scanned = weaken_members(links, links->scanned, &weak);
    } else {
        exti__repeat_free(links);
    }
    exti__free(r.parts);
    exti__free(r.work);
    exti__collection_end(links);
    return weak;
}
