/* What a collection knows of natives. */
#ifndef LINK_COLLECTION_H
#define LINK_COLLECTION_H

#include "link/links.h"

/* Builds the graph, up to the budget.  Nodes that are held from outside are marked, and are to be
 * taken by exti__graph_next_marked. */
void exti__collection_begin(struct exti_links *links);

/* Builds the graph of the natives of these links, whose objects have died, and of all that they
 * refer to; natives of other links are held.  All that is held is marked.  The links are a list,
 * and `first` is the first.  False without memory. */
bool exti__collection_of_died(struct exti_links *links, uint32_t first);

void exti__collection_end(struct exti_links *links);

/* Moves the natives that the collection has not found alive to circles that wait to be taken apart,
 * and ends their links, if one of them is held by another.  Otherwise leaves them to the sweep. */
void exti__circles_take(struct exti_links *links);
void exti__circles_free(struct exti_links *links);

#endif
