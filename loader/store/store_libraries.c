#include "loader/store/store_libraries.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "loader/resolve/absent.h"
#include "loader/resolve/closure.h"
#include "loader/store/store_graph.h"

/* One library of the summary. */
struct library {
    const struct exti_need *need; /* the first user's, in the manifest */
    const struct exti_entry *user;
    size_t users;
};

struct libraries {
    void *tree; /* by file, then by name */
    struct library **sorted;
    size_t count;
};

/* Libraries without a file come last. */
static int library_order(const void *a, const void *b)
{
    const struct exti_need *x = ((const struct library *)a)->need,
                           *y = ((const struct library *)b)->need;

    if (!x->file || !y->file)
        return x->file || y->file ? (x->file ? -1 : 1) : strcmp(x->name, y->name);
    return strcmp(x->file, y->file);
}

static int sorted_order(const void *a, const void *b)
{
    return library_order(*(struct library *const *)a, *(struct library *const *)b);
}

static int add_libraries(struct libraries *l, const struct exti_entry *e, struct exti_error *err)
{
    for (size_t i = 0; i < e->need_count; i++) {
        const struct library key = {&e->needs[i], e, 1};
        struct library *const *node = tfind(&key, &l->tree, library_order);
        struct library *fresh;

        if (node) {
            (*node)->users++;
            continue;
        }
        fresh = exti__alloc(sizeof *fresh);
        if (fresh)
            *fresh = key;
        if (!fresh || !tsearch(fresh, &l->tree, library_order)) {
            exti__free(fresh);
            return exti__fail_nomem(err);
        }
        l->count++;
    }
    return 0;
}

static int sort_libraries(struct libraries *l, const struct exti_manifest *m,
                          struct exti_error *err)
{
    int rc = add_libraries(l, &m->api, err);

    for (size_t i = 0; i < m->count && !rc; i++)
        rc = add_libraries(l, &m->entries[i], err);
    l->sorted = rc ? NULL : exti__calloc(l->count, sizeof(void *));
    if (!rc && !l->sorted)
        rc = exti__fail_nomem(err);
    for (size_t n = 0; !rc && n < l->count; n++) {
        l->sorted[n] = *(struct library **)l->tree;
        tdelete(l->sorted[n], &l->tree, library_order);
    }
    if (!rc && l->count)
        qsort(l->sorted, l->count, sizeof(void *), sorted_order);
    return rc;
}

/* Writes why the library is isolated, shared or missing, as the graph tells it; what is wrong
 * with a file that cannot be read any more. */
static int write_reason(struct exti_store *s, const struct library *l, char *out, size_t cap,
                        struct exti_error *err)
{
    const struct exti_closure_node *n;
    struct exti_error why = {0};
    size_t node;
    const char *asked = l->need->file ? l->need->file : l->user->source;
    int rc =
        exti__store_node(s, exti__store_first_user(s, l->user->source), asked, false, &node, &why);

    *out = 0;
    if (exti__is_unseen(rc, &why)) {
        if (err)
            *err = why;
        return rc;
    }
    if (rc) {
        snprintf(out, cap, "%s", why.message);
        return 0;
    }
    if (l->need->file) {
        exti__closure_reason(s->graph, node, out, cap);
        return 0;
    }
    n = &s->graph->nodes[node];
    for (size_t i = 0; i < n->need_count; i++)
        if (n->needs[i].problem && strcmp(n->needs[i].name, l->need->name) == 0)
            snprintf(out, cap, "%s", n->needs[i].problem);
    return 0;
}

static int report_library(struct exti_store *s, const struct library *l, bool with_why,
                          int (*each)(void *user, const struct exti_library_info *info), void *user,
                          bool *stopped, struct exti_error *err)
{
    char why[512];
    struct exti_library_info info = {.size = sizeof info,
                                     .name = l->need->name,
                                     .file = l->need->file,
                                     .state = !l->need->file      ? EXTI_LIBRARY_MISSING
                                              : l->need->isolated ? EXTI_LIBRARY_ISOLATED
                                                                  : EXTI_LIBRARY_SHARED,
                                     .why = with_why ? why : NULL,
                                     .user = l->user->source,
                                     .users = l->users};
    int rc = with_why ? write_reason(s, l, why, sizeof why, err) : 0;

    if (rc)
        return rc;
    *stopped = each(user, &info) != 0;
    return 0;
}

int exti__store_libraries(struct exti_store *s, bool why,
                          int (*each)(void *user, const struct exti_library_info *info), void *user,
                          struct exti_error *err)
{
    struct libraries l = {0};
    bool stopped = false;
    int rc;

    pthread_mutex_lock(&s->lock);
    rc = sort_libraries(&l, &s->manifest, err);
    for (size_t i = 0; i < l.count && !rc && !stopped; i++)
        rc = report_library(s, l.sorted[i], why, each, user, &stopped, err);
    pthread_mutex_unlock(&s->lock);
    for (size_t i = 0; l.sorted && i < l.count; i++)
        exti__free(l.sorted[i]);
    exti__free(l.sorted);
    exti__tree_free(&l.tree, library_order, exti__free);
    return rc;
}
