/* A table of links, for the files that implement it. */
#ifndef LINK_LINKS_H
#define LINK_LINKS_H

#include <stdatomic.h>

#include "link/graph.h"
#include "link/table.h"

/* Natives of dead circles, each with a reference of ours. */
struct circles {
    struct circles *next;
    struct graph_node *nodes;
    uint32_t count;
};

/* What a collection knows. */
struct collection {
    struct graph graph;
    struct circles *circles; /* made beforehand, so that a sweep needs no memory */
    bool begun;              /* there has been a trace */
    bool whole;              /* the graph has all that links lead to */
    bool others_live;        /* links hold their natives, but for those whose objects have died */
};

/* Natives that refer to each other, and that the host alone holds.  Their references are repeated
 * in the host, and the links of their shells are weak. */
struct repeated {
    struct repeated_group {
        uint32_t begin, count;
    } *groups;         /* by the number in their links' states; the first is none */
    uint32_t *members; /* their links */
    uint32_t count;
    size_t capacity; /* of both */
};

struct exti_links {
    struct exti_links_opts o;
    struct link_table table;
    /* Lists of records; NO_LINK ends them. */
    uint32_t young, dead;
    uint32_t strong, scanned; /* those to scan, and those that were; then it begins anew */
    _Atomic(uint32_t) died;   /* guarded by table.moving, as is `next` of those on it */
    size_t young_count, dead_count, strong_count;
    struct collection collection;
    int64_t weight, ask_at; /* bytes of natives, and at how many the host is asked to collect */
    uint32_t cursor;        /* the link at which the next graph begins */
    struct circles *circles;
    struct repeated repeated;
};

/* What the link adds to its native's count. */
static inline int64_t exti__link_base(const struct exti_links *links, const struct link *l)
{
    if (!(l->state & (LINK_IS_LIGHT | LINK_LOOSE)))
        return links->o.base;
    return l->state & LINK_LOOSE ? 0 : links->o.light;
}

/* Ends the links of a list.  Their natives are freed if they are light shells that nobody refers
 * to, and wait as dead ones if nobody refers to them otherwise.  Records on it that are no links
 * any more are given back.  Returns how many were on it. */
size_t exti__links_end(struct exti_links *links, uint32_t first);

/* Whether young links are listed, for a host that has no other way than to mark. */
static inline bool exti__links_have_young(const struct exti_links *links)
{
    return links->o.marking.keep && !links->o.toggling.strengthen;
}

/* A link and no marker. */
static inline bool exti__link_is_live(const struct link *l)
{
    return (l->state & (LINK_USED | LINK_MARKER)) == LINK_USED;
}

#endif
