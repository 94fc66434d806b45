/* The closure's decisions in words. */
#include <stdio.h>

#include "base/path.h"
#include "loader/resolve/closure_decide.h"

static const char *display_name(const struct exti_closure_node *n)
{
    return n->soname ? n->soname : exti__base_name(n->path);
}

static void write_own_reason(const struct exti_closure_node *n, char *out, size_t cap)
{
    if (n->api)
        snprintf(out, cap, "it is the API library");
    else if (n->uses_api && n->reaches_api && !exti__closure_is_by_rule(n, false))
        snprintf(out, cap, "it uses the API library");
    else if (n->decision.glob)
        snprintf(out, cap, "%s (%s)", n->decision.reason, n->decision.glob);
    else
        snprintf(out, cap, "%s", n->decision.reason);
}

/* Why the node is shared or isolated for the files that need it. */
static void write_reason_as_dependency(const struct exti_closure_graph *g,
                                       const struct exti_closure_node *n, char *out, size_t cap)
{
    const struct exti_closure_node *last = n;
    char own[256];

    while (last->because != EXTI_NO_NODE)
        last = &g->nodes[last->because];
    write_own_reason(last, own, sizeof own);
    if (last != n)
        snprintf(out, cap, "it needs %s, which is isolated: %s", display_name(last), own);
    else if (n->original_of != EXTI_NO_NODE)
        snprintf(out, cap, "%s; it uses the original of %s, not the context's copy", own,
                 display_name(&g->nodes[n->original_of]));
    else
        snprintf(out, cap, "%s", own);
}

/* A root always gets a copy; the decision on it is for others that need it. */
static bool is_copied_as_root(const struct exti_closure_node *n)
{
    return n->root && !n->api;
}

void exti__closure_reason(const struct exti_closure_graph *g, size_t node, char *out, size_t cap)
{
    const struct exti_closure_node *n = &g->nodes[node];
    char dependency[512];

    if (!is_copied_as_root(n)) {
        write_reason_as_dependency(g, n, out, cap);
    } else if (n->isolated) {
        snprintf(out, cap, "it is loaded into the context");
    } else {
        write_reason_as_dependency(g, n, dependency, sizeof dependency);
        snprintf(out, cap, "it is loaded into the context; as a dependency it is shared: %s",
                 dependency);
    }
}

void exti__closure_describe(const struct exti_closure_graph *g, size_t node, char *out, size_t cap)
{
    const struct exti_closure_node *n = &g->nodes[node];
    char reason[600];

    exti__closure_reason(g, node, reason, sizeof reason);
    snprintf(out, cap, "%s: %s", n->isolated || is_copied_as_root(n) ? "isolated" : "shared",
             reason);
}
