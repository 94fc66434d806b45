/* Which natives are held from outside: the natives that links lead to and all that those refer to,
 * by trial deletion.  Bacon and Rajan, Concurrent Cycle Collection in Reference Counted Systems:
 * what a count has beyond the references of other natives of the graph is held from outside. */
#ifndef LINK_GRAPH_H
#define LINK_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include <extisolate/link.h>

#define NO_NODE UINT32_MAX

struct graph_node {
    void *native;
    int64_t held;  /* references that no native of the graph has */
    uint32_t link; /* its, or NO_LINK */
    bool alive;
};

/* Nodes in the order in which they were found. */
struct graph {
    const struct exti_natives *natives;
    void *user;
    struct graph_node *nodes;
    uint32_t count, capacity;
    uint32_t *slots; /* node + 1 by the hash of its native; 0: none */
    uint32_t slot_capacity;
    uint32_t *work; /* nodes that are alive, whose referents are to be so */
    uint32_t work_count;
    bool failed; /* memory is out: the graph lacks some */
};

void exti__graph_begin(struct graph *g, const struct exti_natives *natives, void *user);
void exti__graph_free(struct graph *g);

/* Adds a native, which has the link, unless it is there.  `own` references are those of the link,
 * which do not hold it.  NO_NODE without memory. */
uint32_t exti__graph_add(struct graph *g, void *native, int64_t own, uint32_t link);
uint32_t exti__graph_find(const struct graph *g, const void *native);

/* Takes the node's own references from what others are held by.  Referents that are not in the
 * graph are given to `found`, which may add them. */
void exti__graph_follow(struct graph *g, uint32_t node, exti_native_visit found, void *arg);

/* Before nodes are marked.  False without memory. */
bool exti__graph_settle(struct graph *g);
void exti__graph_mark(struct graph *g, uint32_t node);
/* Takes a node that was marked, after its referents were; NO_NODE: there is none. */
uint32_t exti__graph_next_marked(struct graph *g);

#endif
