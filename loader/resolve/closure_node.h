/* One node of the closure by itself: the facts kept from a file's image, and the names that find
 * it. */
#ifndef LOADER_RESOLVE_CLOSURE_NODE_H
#define LOADER_RESOLVE_CLOSURE_NODE_H

#include "loader/resolve/closure.h"

/* Fills in from `im` what the node needs, searches and is called.  `api` is the API library's node,
 * whose machines decide which slices count, or NULL.  After an error the node can only be
 * cleared. */
int exti__closure_node_fill(struct exti_closure_node *n, const struct exti_image *im,
                            const struct exti_search_ops *ops, const struct exti_closure_node *api,
                            struct exti_error *err);

/* Whether the loader knows the node's file, once loaded, by `name`. */
bool exti__closure_node_has_name(const struct exti_closure_node *n,
                                 const struct exti_search_ops *ops, const char *name);

/* Makes exti__closure_node_has_name true of `name`. */
int exti__closure_node_add_alias(struct exti_closure_node *n, const struct exti_search_ops *ops,
                                 const char *name, struct exti_error *err);

/* The node as the file for which a library is searched; points into the node. */
struct exti_requester exti__closure_node_requester(const struct exti_closure_node *n);

void exti__closure_node_clear(struct exti_closure_node *n);

#endif
