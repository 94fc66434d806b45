
#include "loader/store/store_graph.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "loader/resolve/closure.h"
#include "loader/resolve/search.h"

void exti__store_drop_graph(struct exti_store *s)
{
    if (s->graph)
        exti__closure_close(s->graph);
    exti__free(s->graph);
    s->graph = NULL;
}

static int start_graph(struct exti_store *s, const char *api, struct exti_error *err)
{
    const struct exti_manifest_policy *p = &s->manifest.policy;
    const struct exti_closure_opts opts = {.api_library = api,
                                           .rules = p->rules,
                                           .rule_count = p->rule_count,
                                           .quirks = s->quirks,
                                           .images = &s->images,
                                           .mode = p->closure,
                                           .own_locks = s->withhold,
                                           .in_process =
                                               !s->copy_only && (s->one_shot || s->adapts)};
    int rc;

    s->graph = exti__calloc(1, sizeof *s->graph);
    if (!s->graph)
        return exti__fail_nomem(err);
    rc = exti__closure_init(s->graph, &opts, err);
    if (rc) {
        exti__free(s->graph);
        s->graph = NULL;
    }
    return rc;
}

int exti__store_node(struct exti_store *s, const char *first, const char *source, bool root,
                     size_t *node, struct exti_error *err)
{
    const char *api = s->manifest.api.source ? s->manifest.api.source : source;
    int rc = 0;

    for (int tries = 0; tries < 2; tries++) {
        if (!s->graph)
            rc = start_graph(s, api, err);
        if (!rc && strcmp(first, source) != 0)
            rc = exti__closure_add(s->graph, first, false, node, err);
        if (!rc)
            rc = exti__closure_add(s->graph, source, root, node, err);
        if (rc || exti__closure_is_current(s->graph, *node))
            return rc;
        exti__store_drop_graph(s);
    }
    return exti__fail(err, EXTI_E_BUSY, EXTI_NO_OFFSET, "keeps changing on disk; try again");
}

const char *exti__store_first_user(const struct exti_store *s, const char *source)
{
    const struct exti_manifest *m = &s->manifest;
    const struct exti_entry *user = NULL;
    size_t steps = 0;

    do {
        user = NULL;
        for (size_t i = 0; i < m->count && !user; i++)
            for (size_t k = 0; k < m->entries[i].need_count && !user; k++) {
                const struct exti_need *n = &m->entries[i].needs[k];

                if (n->isolated && strcmp(n->file, source) == 0)
                    user = &m->entries[i];
            }
        source = user ? user->source : source;
    } while (user && ++steps < m->count); /* ends for files that need each other, too */
    return source;
}

bool exti__store_finds_need(struct exti_store *s, const char *first, const struct exti_entry *e,
                            const char *name)
{
    const struct exti_closure_node *n;
    size_t node;

    /* Whoever looks again meets the error and reports it. */
    if (exti__store_node(s, first, e->source, false, &node, NULL))
        return true;
    n = &s->graph->nodes[node];
    for (size_t i = 0; i < n->need_count; i++)
        if (strcmp(n->needs[i].name, name) == 0)
            return n->needs[i].node != EXTI_NO_NODE;
    return false;
}

int exti__store_search_key(enum exti_file_format format, char **out, struct exti_error *err)
{
    const struct exti_search_ops *ops = exti__search_ops(format);

    if (ops && ops->key)
        return ops->key(out, err);
    *out = exti__strdup("");
    return *out ? 0 : exti__fail_nomem(err);
}

/* ---- libraries that a running copy opens ---- */

int exti__store_classify(struct exti_store *s, const char *path, bool *isolated, char *why,
                         size_t cap, struct exti_error *err)
{
    size_t node;
    int rc;

    *isolated = false;
    snprintf(why, cap, "all libraries are");
    if (s->manifest.policy.closure == EXTI_CLOSURE_NONE)
        return 0;
    rc = exti__store_node(s, path, path, false, &node, err);
    if (rc)
        return rc;
    *isolated = s->graph->nodes[node].isolated || s->graph->nodes[node].api;
    exti__closure_reason(s->graph, node, why, cap);
    return 0;
}

int exti__store_is_isolated(struct exti_store *s, const char *path, bool *isolated,
                            struct exti_error *err)
{
    char why[8];
    int rc;

    pthread_mutex_lock(&s->lock);
    rc = exti__store_classify(s, path, isolated, why, sizeof why, err);
    pthread_mutex_unlock(&s->lock);
    return rc;
}

int exti__store_find_library(struct exti_store *s, const char *source, const char *name,
                             char **path, struct exti_error *err)
{
    size_t from, node;
    int rc;

    *path = NULL;
    pthread_mutex_lock(&s->lock);
    rc = exti__store_node(s, exti__store_first_user(s, source), source, false, &from, err);
    if (!rc)
        rc = exti__closure_find(s->graph, from, name, &node, err);
    if (!rc && node != EXTI_NO_NODE)
        rc = exti__copy_text(path, s->graph->nodes[node].path, err);
    pthread_mutex_unlock(&s->lock);
    return rc;
}
