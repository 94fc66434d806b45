/* A table of links, for the files that implement it. */
#ifndef LINK_LINKS_H
#define LINK_LINKS_H

#include "link/graph.h"
#include "link/table.h"

/* Natives of dead circles, each with a reference of ours. */
struct circles {
    struct circles *next;
    struct graph_node *nodes;
    uint32_t count;
};

/* What a collection of all knows. */
struct collection {
    struct graph graph;
    struct circles *circles; /* made beforehand, so that a sweep needs no memory */
    bool begun;              /* there has been a trace */
    bool whole;              /* the graph has all that links lead to */
};

struct exti_links {
    struct exti_links_opts o;
    struct link_table table;
    uint32_t young, dead; /* lists of records; NO_LINK ends them */
    size_t young_count, dead_count;
    struct collection collection;
    uint32_t cursor; /* the link at which the next graph begins */
    struct circles *circles;
};

/* What the link adds to its native's count. */
int64_t exti__link_base(const struct exti_links *links, const struct link *l);

/* Ends the link.  Its native is freed if it is a light shell that nobody refers to, and waits as a
 * dead one if nobody refers to it otherwise. */
void exti__link_end(struct exti_links *links, uint32_t i);

/* A link and no marker. */
bool exti__link_is_live(const struct link *l);

/* Ends what a collection knows. */
void exti__collection_end(struct exti_links *links);

/* Moves the natives that the collection has not found alive to circles that wait to be taken apart,
 * and ends their links, if one of them is held by another.  Otherwise leaves them to the sweep. */
void exti__circles_take(struct exti_links *links);
void exti__circles_free(struct exti_links *links);

#endif
