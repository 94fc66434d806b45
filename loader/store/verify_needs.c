#include "loader/store/verify_needs.h"

#include <string.h>

#include "base/error.h"
#include "base/path.h"
#include "loader/resolve/closure.h"
#include "loader/resolve/quirks.h"
#include "loader/store/store_graph.h"
#include "loader/store/store_policy.h"
#include "loader/store/store_state.h"

struct needs_check {
    struct exti_store store; /* only its manifest, quirks and graph */
    exti_report_fn report;
    void *user;
    int stop;
};

static void report_need(struct needs_check *c, const char *copy, const struct exti_need *need,
                        const char *what)
{
    struct exti_error finding;

    exti__fail(&finding, EXTI_E_CHECK, EXTI_NO_OFFSET, "%s %.255s, %s; copy it again",
               need->file ? "shares" : "was made without", need->file ? need->file : need->name,
               what);
    exti__error_file(&finding, copy);
    c->stop = c->report ? c->report(c->user, &finding) : 0;
}

static const struct exti_closure_need *find_need(const struct exti_closure_node *n,
                                                 const char *name)
{
    for (size_t i = 0; i < n->need_count; i++)
        if (strcmp(n->needs[i].name, name) == 0)
            return &n->needs[i];
    return NULL;
}

/* Compares the needs that are not isolated with those of the node `node`. */
static void compare_needs(struct needs_check *c, const struct exti_entry *e, const char *copy,
                          size_t node)
{
    const struct exti_closure_graph *g = c->store.graph;

    for (size_t k = 0; k < e->need_count && !c->stop; k++) {
        const struct exti_need *need = &e->needs[k];
        const struct exti_closure_need *now = find_need(&g->nodes[node], need->name);

        if (need->isolated || !now || now->node == EXTI_NO_NODE)
            continue;
        if (!need->file)
            report_need(c, copy, need, "which is there now");
        else if (g->nodes[now->node].isolated && strcmp(g->nodes[now->node].real, need->file) == 0)
            report_need(c, copy, need, "of which the context is to have a copy");
    }
}

static bool has_shared_need(const struct exti_entry *e)
{
    for (size_t k = 0; k < e->need_count; k++)
        if (!e->needs[k].isolated)
            return true;
    return false;
}

static int check_entry_needs(struct needs_check *c, const struct exti_entry *e, const char *copy,
                             struct exti_error *err)
{
    size_t node;
    int rc;

    if (!has_shared_need(e))
        return 0;
    rc = exti__store_node(&c->store, exti__store_first_user(&c->store, e->source), e->source,
                          e->takes_api, &node, err);
    if (!rc)
        compare_needs(c, e, copy, node);
    return rc;
}

/* Whether the source is the one that the copy was made from; else there is a finding already. */
static bool has_source(const char *copy, const struct exti_manifest *m, const struct exti_entry *e)
{
    const enum exti_copy_state state = exti__entry_state(copy, m, e);

    return state == EXTI_COPY_FRESH || state == EXTI_COPY_MISSING;
}

int exti__verify_needs(const struct exti_manifest *m, char *const *copies, exti_report_fn report,
                       void *user, struct exti_error *err)
{
    struct needs_check c = {.report = report, .user = user};
    struct exti_quirks *quirks;
    bool same = false;
    int rc;

    if (m->policy.closure == EXTI_CLOSURE_NONE || !has_source(copies[0], m, &m->api))
        return 0;
    rc = exti_quirks_open(NULL, 0, &quirks, err);
    if (rc)
        return rc;
    c.store.manifest = *m;
    c.store.withhold = m->api.withheld;
    c.store.quirks = quirks;
    rc = exti__store_is_same_search(&c.store, &same, err);
    for (size_t i = 0; i <= m->count && !rc && same && !c.stop; i++) {
        const struct exti_entry *e = i ? &m->entries[i - 1] : &m->api;

        /* Copies of the other kind are stale for those whom the API library's copy is for. */
        if (e->withheld == m->api.withheld && has_source(copies[i], m, e))
            rc = check_entry_needs(&c, e, copies[i], err);
    }
    exti__store_drop_graph(&c.store);
    exti_quirks_free(quirks);
    return rc;
}
