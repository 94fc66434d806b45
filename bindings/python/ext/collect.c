#include "bindings/python/ext/collect.h"

#include <stdio.h>
#include <stdlib.h>

/* An interpreter that is stopped. */
struct stopped {
    struct pkg_heap *heap;   /* NULL: its code has ended it */
    struct pkg_entry *entry; /* acquired */
    int pinned;              /* by extipy_pin */
    int state;               /* what pkg_heap.leave is given */
};

struct stopping {
    const struct pkg_core *core;
    struct stopped *all;
    size_t count;
};

/* ---- which ---- */

static size_t count_heaps(const struct pkg_heaps *heaps)
{
    size_t n = 0;

    for (const struct pkg_heap *h = heaps->first; h; h = h->next)
        n++;
    return n;
}

/* The numbers of those that have a heap now; NULL: no memory. */
static uint64_t *list_heaps(struct pkg_heaps *heaps, size_t *count)
{
    uint64_t *ids;
    size_t i = 0;

    pthread_mutex_lock(&heaps->lock);
    *count = count_heaps(heaps);
    ids = malloc((*count + 1) * sizeof *ids);
    for (const struct pkg_heap *h = heaps->first; ids && h; h = h->next)
        ids[i++] = h->id;
    pthread_mutex_unlock(&heaps->lock);
    return ids;
}

static int is_listed(const struct pkg_heaps *heaps, const struct pkg_heap *heap)
{
    const struct pkg_heap *h = heaps->first;

    while (h && h != heap)
        h = h->next;
    return h != NULL;
}

/* ---- stopping ---- */

static void let_go(const struct pkg_core *core, const struct stopped *it)
{
    if (it->heap)
        it->heap->leave(it->state);
    if (it->pinned)
        extipy_unpin(it->entry->ctx);
    core->release(it->entry);
}

static void let_all_go(struct stopping *s)
{
    while (s->count)
        let_go(s->core, &s->all[--s->count]);
}

static struct pkg_heap *heap_of(struct pkg_heaps *heaps, uint64_t id)
{
    struct pkg_heap *heap;

    pthread_mutex_lock(&heaps->lock);
    heap = heaps->first;
    while (heap && heap->id != id)
        heap = heap->next;
    pthread_mutex_unlock(&heaps->lock);
    return heap;
}

/* One that its code has ended runs nothing any more, and what it had is as good as gone. */
static int has_exited(const struct pkg_entry *e)
{
    return e->ctx && extipy_exit_status(e->ctx) >= 0;
}

/* Its code may end it at any time until its GIL is taken, which nobody gets afterwards who has not
 * pinned it. */
static int pin(struct stopped *it, struct exti_error *err)
{
    int rc = it->entry->ctx ? extipy_pin(it->entry->ctx, err) : 0;

    it->pinned = it->entry->ctx && rc == 0;
    return rc == EXTIPY_E_EXITED ? 0 : rc;
}

static void take_gil(struct stopped *it, struct pkg_heaps *heaps)
{
    it->heap = it->pinned || !it->entry->ctx ? heap_of(heaps, it->entry->id) : NULL;
    if (!it->heap)
        return;
    it->state = it->heap->enter();
    if (!has_exited(it->entry))
        return;
    it->heap->leave(it->state);
    it->heap = NULL;
}

/* While it is acquired the interpreter is not closed, and its heap stays. */
static int stop(struct stopping *s, uint64_t id, struct exti_error *err)
{
    struct stopped *next = &s->all[s->count];
    int rc = s->core->acquire(&next->entry, id, err);

    if (rc < 0)
        return rc;
    rc = pin(next, err);
    if (rc < 0) {
        s->core->release(next->entry);
        return rc;
    }
    s->count++;
    take_gil(next, s->core->heaps);
    return 0;
}

/* In the order of their numbers, so that no two threads wait for each other; a thread that has one
 * GIL waits for another nowhere else.  With the lock of the list if it returns 0.  1: there is one
 * more by now. */
static int stop_all(struct stopping *s, struct exti_error *err)
{
    size_t count, listed = 0;
    uint64_t *ids = list_heaps(s->core->heaps, &count);
    int rc = 0;

    s->count = 0;
    s->all = ids ? malloc((count + 1) * sizeof *s->all) : NULL;
    if (!s->all)
        rc = EXTI_E_NOMEM;
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = stop(s, ids[i], err);
    free(ids);
    if (rc == 0) {
        pthread_mutex_lock(&s->core->heaps->lock);
        for (size_t i = 0; i < count; i++)
            listed += is_listed(s->core->heaps, s->all[i].heap) || !s->all[i].heap;
        if (listed == count && count_heaps(s->core->heaps) == count)
            return 0;
        pthread_mutex_unlock(&s->core->heaps->lock);
        rc = 1;
    }
    if (s->all)
        let_all_go(s);
    free(s->all);
    return rc;
}

/* ---- marking, with all locks ---- */

/* Messages that are on their way keep what they have. */
static void mark_roots(struct pkg_heap *heap)
{
    for (struct pkg_object *o = heap->alive; o; o = o->next)
        o->marked = atomic_load(&o->refs) > atomic_load(&o->proxies);
}

static void mark(const struct stopping *s)
{
    size_t kept = 1;

    while (kept) {
        kept = 0;
        for (size_t i = 0; i < s->count; i++)
            if (s->all[i].heap)
                kept += exti_links_trace(s->all[i].heap->links, EXTI_LINKS_ALL);
    }
}

static size_t sweep(struct pkg_heap *heap)
{
    struct pkg_object *o, *next;
    size_t ended = 0;

    exti_links_sweep(heap->links, EXTI_LINKS_ALL);
    for (o = heap->alive; o; o = next) {
        next = o->next;
        if (!o->marked) {
            pkg_object_end(o);
            ended++;
        }
    }
    if (ended)
        pkg_heap_ring(heap);
    return ended;
}

static size_t collect(const struct stopping *s)
{
    size_t ended = 0;

    for (size_t i = 0; i < s->count; i++)
        if (s->all[i].heap) {
            pthread_mutex_lock(&s->all[i].heap->lock);
            pkg_heap_settle_locked(s->all[i].heap);
            mark_roots(s->all[i].heap);
        }
    mark(s);
    for (size_t i = 0; i < s->count; i++)
        if (s->all[i].heap) {
            ended += sweep(s->all[i].heap);
            pthread_mutex_unlock(&s->all[i].heap->lock);
        }
    return ended;
}

int pkg_collect(const struct pkg_core *core, size_t *ended, struct exti_error *err)
{
    struct pkg_heaps *heaps = core->heaps;
    struct stopping s = {.core = core};
    size_t count;
    int rc;

    *ended = 0;
    pthread_mutex_lock(&heaps->collecting);
    do
        rc = stop_all(&s, err);
    while (rc == 1);
    if (rc < 0) /* not again at once */
        atomic_store(&heaps->most, atomic_load(&heaps->count) + PKG_COLLECT_FROM);
    if (rc == 0) {
        *ended = collect(&s);
        count = atomic_load(&heaps->count);
        atomic_store(&heaps->most, count > PKG_COLLECT_FROM / 2 ? 2 * count : PKG_COLLECT_FROM);
        pthread_mutex_unlock(&heaps->lock);
        let_all_go(&s);
        free(s.all);
    }
    pthread_mutex_unlock(&heaps->collecting);
    return rc;
}
