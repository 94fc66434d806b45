/* From what the policy says of each library to what its users get: the original or a copy.
 *
 * A copy of what uses the API library, or of what a rule isolates, is of use only to a file that is a copy
 * itself, as originals name originals.  So those pull along what needs them.  Nothing is pulled the other
 * way: what is shared keeps the originals of what it needs, though the context may have copies of them
 * for others.
 *
 * Only what lies below a library counts.  So each answer is final as soon as that is known, and the ones
 * that are new, circles included, are the least fixed point over the new nodes. */
#include <stdio.h>
#include <string.h>

#include "base/os/path.h"
#include "loader/resolve/closure_priv.h"

struct decider {
    struct exti_closure_graph *g;
    size_t from;
    enum exti_closure mode;
};

typedef bool (*follows_fn)(const struct decider *d, const struct exti_closure_node *user,
                           const struct exti_closure_node *need);

static bool is_fixed(const struct exti_closure_node *n)
{
    return n->decision.why == EXTI_WHY_FIXED;
}

static bool is_by_rule(const struct exti_closure_node *n, bool share)
{
    return n->decision.why == EXTI_WHY_RULE && n->decision.share == share;
}

static void start(const struct decider *d, struct exti_closure_node *n)
{
    const bool with_api = d->mode != EXTI_CLOSURE_NONE && !is_fixed(n);

    n->because = EXTI_NO_NODE;
    n->reaches_api = n->api || (n->uses_api && with_api);
    n->isolated = n->reaches_api || is_by_rule(n, false) ||
                  (n->decision.why == EXTI_WHY_DEFAULT && !n->decision.share);
}

static bool follows_to_api(const struct decider *d, const struct exti_closure_node *user,
                           const struct exti_closure_node *need)
{
    return d->mode != EXTI_CLOSURE_NONE && !is_fixed(user) && !user->reaches_api &&
           need->reaches_api;
}

static bool follows_rule(const struct decider *d, const struct exti_closure_node *user,
                         const struct exti_closure_node *need)
{
    (void)d;
    return user->decision.why == EXTI_WHY_DEFAULT && !user->isolated && need->isolated &&
           !need->api;
}

/* Needs mostly come behind their users, so that one round backwards settles nearly all. */
static void spread(const struct decider *d, follows_fn follows)
{
    struct exti_closure_graph *g = d->g;
    bool changed = true;

    while (changed) {
        changed = false;
        for (size_t i = g->count; i-- > d->from;) {
            struct exti_closure_node *n = &g->nodes[i];

            for (size_t k = 0; k < n->need_count; k++) {
                const size_t need = n->needs[k].node;

                if (need == EXTI_NO_NODE || !follows(d, n, &g->nodes[need]))
                    continue;
                n->reaches_api = g->nodes[need].reaches_api;
                if (!is_by_rule(n, false))
                    n->because = need;
                n->isolated = changed = true;
                break;
            }
        }
    }
}

/* What a user who had a library shared should know of. */
static size_t isolated_need(const struct exti_closure_graph *g, const struct exti_closure_node *n)
{
    for (size_t k = 0; k < n->need_count; k++)
        if (n->needs[k].node != EXTI_NO_NODE && g->nodes[n->needs[k].node].isolated)
            return n->needs[k].node;
    return EXTI_NO_NODE;
}

void exti__closure_decide(struct exti_closure_graph *g, size_t from, enum exti_closure mode,
                          const struct exti_policy *policy)
{
    const struct decider d = {g, from, mode};

    for (size_t i = from; i < g->count; i++) {
        struct exti_closure_node *n = &g->nodes[i];

        n->decision = exti__policy_decide(policy, n->soname, n->path, n->flags);
        if (n->quirk && n->decision.why > EXTI_WHY_RULE)
            n->decision =
                (struct exti_decision){n->quirk_shares, EXTI_WHY_RULE, n->quirk, "a quirk says so"};
        start(&d, n);
    }
    spread(&d, follows_to_api);
    spread(&d, follows_rule);
    for (size_t i = from; i < g->count; i++) {
        struct exti_closure_node *n = &g->nodes[i];

        n->overridden = n->isolated && n->decision.share && n->decision.why != EXTI_WHY_DEFAULT;
        n->original_of = !n->isolated && is_by_rule(n, true) ? isolated_need(g, n) : EXTI_NO_NODE;
    }
}

/* ---- reasons in words --------------------------------------------------------------------------- */

static const char *display_name(const struct exti_closure_node *n)
{
    return n->soname ? n->soname : exti__base_name(n->path);
}

static void write_own_reason(const struct exti_closure_node *n, char *out, size_t cap)
{
    if (n->api)
        snprintf(out, cap, "it is the API library");
    else if (n->uses_api && n->reaches_api && !is_by_rule(n, false))
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
