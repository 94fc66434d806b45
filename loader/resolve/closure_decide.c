/* Turns the policy's decision on each library into what its users get: the original or a copy.
 *
 * Only a copy can use a copy, as an original names originals.  So whatever needs a library that
 * uses the API library, or that a rule isolates, must be isolated too.  Nothing spreads the other
 * way: a shared library keeps the originals of what it needs, even if the context has copies of
 * them for others.
 *
 * A library of which the program has its own is isolated, too, although it would be shared: OpenSSL
 * in node.  References to the shared original would lead to the program's, some of them, for where
 * the two differ in their symbols one user would mix both; and so would those of the shared library
 * that needs it, as libssl needs libcrypto.  So whatever needs such a library is isolated as well.
 * In copies each reference leads to what the original names.  Left alone are what the process has
 * one of, and what a program replaces for the whole process: the C library, C++'s, allocators.
 *
 * The decision on a library depends only on the library, on what it needs and on the program.  So
 * it is final once these are known, and the decisions on new nodes, circles included, are the least
 * fixed point over the new nodes. */
#include "loader/resolve/closure_decide.h"

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

bool exti__closure_is_by_rule(const struct exti_closure_node *n, bool share)
{
    return n->decision.why == EXTI_WHY_RULE && n->decision.share == share;
}

static void decide_alone(const struct decider *d, struct exti_closure_node *n)
{
    const bool with_api = d->mode != EXTI_CLOSURE_NONE && !is_fixed(n);

    n->because = EXTI_NO_NODE;
    n->reaches_api = n->api || (n->uses_api && with_api);
    n->reaches_captured = n->decision.why == EXTI_WHY_CAPTURED;
    n->isolated = n->reaches_api || n->reaches_captured || exti__closure_is_by_rule(n, false) ||
                  (n->decision.why == EXTI_WHY_DEFAULT && !n->decision.share);
}

/* A user of the API library, however far away, must get the context's own. */
static bool follows_to_api(const struct decider *d, const struct exti_closure_node *user,
                           const struct exti_closure_node *need)
{
    return d->mode != EXTI_CLOSURE_NONE && !is_fixed(user) && !user->reaches_api &&
           need->reaches_api;
}

/* A user of a library that the program captures would be the program's, too, in part. */
static bool follows_captured(const struct decider *d, const struct exti_closure_node *user,
                             const struct exti_closure_node *need)
{
    (void)d;
    return !user->reaches_captured && !user->decision.single &&
           !exti__closure_is_by_rule(user, true) && need->reaches_captured;
}

/* Originals name originals: only a copy can use what a rule isolates. */
static bool follows_rule(const struct decider *d, const struct exti_closure_node *user,
                         const struct exti_closure_node *need)
{
    (void)d;
    return user->decision.why == EXTI_WHY_DEFAULT && !user->isolated && need->isolated &&
           !need->api;
}

/* What is isolated anyhow is so for its own reason, unless it uses the API library. */
static void follow(struct exti_closure_node *user, size_t index,
                   const struct exti_closure_node *need)
{
    if (!exti__closure_is_by_rule(user, false) && (!user->isolated || need->reaches_api))
        user->because = index;
    user->reaches_api = user->reaches_api || need->reaches_api;
    user->reaches_captured = user->reaches_captured || need->reaches_captured;
    user->isolated = true;
}

/* Isolates what needs an isolated library, until nothing changes.  Needs mostly come after their
 * users, so one round backwards settles nearly all. */
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
                follow(n, need, &g->nodes[need]);
                changed = true;
                break;
            }
        }
    }
}

/* The first need of a shared library that the context has a copy of.  The library uses the
 * original nevertheless, which the user should know. */
static size_t isolated_need(const struct exti_closure_graph *g, const struct exti_closure_node *n)
{
    for (size_t k = 0; k < n->need_count; k++)
        if (n->needs[k].node != EXTI_NO_NODE && g->nodes[n->needs[k].node].isolated)
            return n->needs[k].node;
    return EXTI_NO_NODE;
}

struct exti_decision exti__closure_decision(const struct exti_policy *policy,
                                            const struct exti_closure_node *n)
{
    const struct exti_decision d = exti__policy_decide(policy, n->soname, n->path, n->flags);

    if (!n->quirk || d.why <= EXTI_WHY_RULE)
        return d;
    return (struct exti_decision){.share = n->quirk_shares,
                                  .why = EXTI_WHY_RULE,
                                  .glob = n->quirk,
                                  .reason = "a quirk says so"};
}

void exti__closure_decide(struct exti_closure_graph *g, size_t from, enum exti_closure mode,
                          const struct exti_policy *policy)
{
    const struct decider d = {g, from, mode};

    for (size_t i = from; i < g->count; i++) {
        struct exti_closure_node *n = &g->nodes[i];

        n->decision = exti__closure_decision(policy, n);
        if (n->captured)
            n->decision = exti__policy_captured(n->decision);
        decide_alone(&d, n);
    }
    spread(&d, follows_to_api);
    spread(&d, follows_captured);
    spread(&d, follows_rule);
    for (size_t i = from; i < g->count; i++) {
        struct exti_closure_node *n = &g->nodes[i];

        n->overridden = n->isolated && n->decision.share && n->decision.why != EXTI_WHY_DEFAULT;
        n->original_of =
            !n->isolated && exti__closure_is_by_rule(n, true) ? isolated_need(g, n) : EXTI_NO_NODE;
    }
}
