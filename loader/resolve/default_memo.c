#include "loader/resolve/default_memo.h"

#include <pthread.h>
#include <search.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/os/fs_id.h"

struct exti_default_memo {
    pthread_mutex_t lock;
    void *found; /* tree of struct found */
};

struct found {
    struct exti_default_query query; /* its name is in the same block */
    const char *path;                /* likewise */
};

static int query_order(const void *a, const void *b)
{
    const struct exti_default_query *x = &((const struct found *)a)->query,
                                    *y = &((const struct found *)b)->query;
    const int order = strcmp(x->name, y->name);

    if (order)
        return order;
    if (x->no_default != y->no_default)
        return x->no_default ? 1 : -1;
    if (x->kind.machine != y->kind.machine)
        return x->kind.machine < y->kind.machine ? -1 : 1;
    return (x->kind.class - y->kind.class) * 256 + x->kind.data - y->kind.data;
}

int exti__default_memo_open(struct exti_default_memo **out, struct exti_error *err)
{
    struct exti_default_memo *memo = exti__calloc(1, sizeof *memo);

    if (!memo)
        return exti__fail_nomem(err);
    pthread_mutex_init(&memo->lock, NULL);
    *out = memo;
    return 0;
}

void exti__default_memo_close(struct exti_default_memo *memo)
{
    if (!memo)
        return;
    exti__tree_free(&memo->found, query_order, exti__free);
    pthread_mutex_destroy(&memo->lock);
    exti__free(memo);
}

char *exti__default_memo_get(struct exti_default_memo *memo, const struct exti_default_query *q)
{
    const struct found key = {*q, NULL};
    struct found *const *node;
    struct exti_file_id id;
    char *path = NULL;

    pthread_mutex_lock(&memo->lock);
    node = tfind(&key, &memo->found, query_order);
    if (node && !exti__fs_id((*node)->path, &id, NULL))
        path = exti__strdup((*node)->path);
    pthread_mutex_unlock(&memo->lock);
    return path;
}

void exti__default_memo_put(struct exti_default_memo *memo, const struct exti_default_query *q,
                            const char *path)
{
    const size_t n = strlen(q->name) + 1, m = strlen(path) + 1;
    struct found *f = exti__alloc(sizeof *f + n + m);
    void **node;

    if (!f)
        return;
    f->query = *q;
    f->query.name = memcpy(f + 1, q->name, n);
    f->path = memcpy((char *)(f + 1) + n, path, m);
    pthread_mutex_lock(&memo->lock);
    node = tsearch(f, &memo->found, query_order);
    if (!node || *node != f)
        exti__free(f);
    pthread_mutex_unlock(&memo->lock);
}
