#include "loader/store/store.h"

#include <search.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/path.h"
#include "loader/store/store_graph.h"

const char *exti__store_intern(struct exti_store *s, char *string)
{
    char **node = string ? tsearch(string, &s->strings, exti__string_order) : NULL;

    if (!node || *node != string)
        exti__free(string);
    return node ? *node : NULL;
}

int exti__store_export_paths(struct exti_store *s, const struct exti_entry *e, const char **copy,
                             const char **source, struct exti_error *err)
{
    *copy = exti__store_intern(s, exti__path_join(s->dir, e->copy));
    *source = exti__store_intern(s, exti__strdup(e->source));
    return *copy && *source ? 0 : exti__fail_nomem(err);
}

int exti__store_api(struct exti_store *s, const char **copy, const char **source,
                    struct exti_error *err)
{
    int rc;

    pthread_mutex_lock(&s->lock);
    rc = exti__store_export_paths(s, &s->manifest.api, copy, source, err);
    pthread_mutex_unlock(&s->lock);
    return rc;
}

void exti__store_free(struct exti_store *s)
{
    exti__store_drop_graph(s);
    exti__manifest_clear(&s->manifest);
    exti__private_symbols_free(&s->renames);
    exti__tree_free(&s->strings, exti__string_order, exti__free);
    exti__free(s->dir);
    pthread_mutex_destroy(&s->lock);
    *s = (struct exti_store){0};
}
