#include "loader/store/store_needs.h"

#include <stdio.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/path.h"
#include "loader/resolve/closure.h"
#include "loader/store/store_graph.h"
#include "loader/store/store_names.h"

/* The file name of the copy of `source`, which need not be made yet. */
static int needed_copy_name(struct exti_store *s, const char *source, char *name,
                            struct exti_error *err)
{
    const struct exti_entry *e = exti__manifest_find(&s->manifest, source);

    if (e) {
        snprintf(name, EXTI_FILE_NAME_MAX + 1, "%s", e->copy);
        return 0;
    }
    exti__store_propose_name(s, source, name);
    return exti__store_check_name(s, source, name, err);
}

static int fill_need(struct exti_store *s, const struct exti_closure_need *from,
                     struct exti_need *to, struct exti_error *err)
{
    const struct exti_closure_node *n;
    char name[EXTI_FILE_NAME_MAX + 1];
    int rc = exti__copy_text(&to->name, from->name, err);

    if (rc || from->node == EXTI_NO_NODE)
        return rc;
    n = &s->graph->nodes[from->node];
    to->isolated = n->isolated;
    to->optional = from->optional;
    rc = exti__copy_text(&to->file, n->real, err);
    if (!rc && n->isolated) {
        rc = needed_copy_name(s, n->real, name, err);
        if (!rc)
            rc = exti__copy_text(&to->to, name, err);
    } else if (!rc && !from->by_name) {
        /* By its path: the loader might not find it from the copy's folder and search path. */
        rc = exti__copy_text(&to->to, n->path, err);
    }
    return rc;
}

int exti__store_needs(struct exti_store *s, const struct exti_copy_request *r, struct exti_entry *e,
                      struct exti_error *err)
{
    const struct exti_closure_node *n;
    size_t node;
    int rc;

    e->takes_api = true;
    if (s->manifest.policy.closure == EXTI_CLOSURE_NONE)
        return 0;
    rc = exti__store_node(s, r->first, r->source, r->root, &node, err);
    if (rc)
        return rc;
    n = &s->graph->nodes[node];
    e->takes_api = r->root || n->uses_api;
    e->needs = exti__calloc(n->need_count + 1, sizeof *e->needs);
    if (!e->needs)
        return exti__fail_nomem(err);
    for (size_t i = 0; i < n->need_count && !rc; i++) {
        const size_t needed = n->needs[i].node;

        if (n->needs[i].system)
            continue;
        if (needed != EXTI_NO_NODE && s->graph->nodes[needed].api)
            e->takes_api = true;
        else
            rc = fill_need(s, &n->needs[i], &e->needs[e->need_count++], err);
    }
    return rc;
}
