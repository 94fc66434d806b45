/* What closure.c and closure_decide.c share. */
#ifndef LOADER_RESOLVE_CLOSURE_PRIV_H
#define LOADER_RESOLVE_CLOSURE_PRIV_H

#include "loader/resolve/closure.h"

/* Decides on the nodes from `from` on, all of whose needs are known; those before are decided already. */
void exti__closure_decide(struct exti_closure_graph *g, size_t from, enum exti_closure mode,
                          const struct exti_policy *policy);

#endif
