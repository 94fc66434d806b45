/* Which libraries of the closure get copies. */
#ifndef LOADER_RESOLVE_CLOSURE_DECIDE_H
#define LOADER_RESOLVE_CLOSURE_DECIDE_H

#include "loader/resolve/closure.h"

/* Decides on the nodes from `from` on, whose needs must all be known; those before them stay as
 * they were decided. */
void exti__closure_decide(struct exti_closure_graph *g, size_t from, enum exti_closure mode,
                          const struct exti_policy *policy);

/* The policy's decision on the node, quirks included, whatever the program exports. */
struct exti_decision exti__closure_decision(const struct exti_policy *policy,
                                            const struct exti_closure_node *n);

/* Whether a rule of the user's or a quirk decides on the node, and for sharing or against. */
bool exti__closure_is_by_rule(const struct exti_closure_node *n, bool share);

#endif
