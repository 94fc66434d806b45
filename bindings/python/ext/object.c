#include "bindings/python/ext/object.h"

#include <stdlib.h>

/* ---- heaps ---- */

static void release_heap(struct pkg_heap *heap)
{
    if (atomic_fetch_sub(&heap->refs, 1) != 1)
        return;
    pthread_mutex_destroy(&heap->lock);
    free(heap);
}

void pkg_heap_begin(struct pkg_heap *heap, struct pkg_heaps *heaps)
{
    struct pkg_heap **at = &heaps->first;

    heap->heaps = heaps;
    atomic_init(&heap->refs, 1);
    pthread_mutex_init(&heap->lock, NULL);
    pthread_mutex_lock(&heaps->lock);
    while (*at && (*at)->id < heap->id)
        at = &(*at)->next;
    heap->next = *at;
    *at = heap;
    pthread_mutex_unlock(&heaps->lock);
}

/* With the lock of the list. */
static void unlist_heap(struct pkg_heap *heap)
{
    struct pkg_heap **at = &heap->heaps->first;

    while (*at != heap)
        at = &(*at)->next;
    *at = heap->next;
}

/* ---- the lists of a heap, with its lock ---- */

static void list(struct pkg_object **list_of, struct pkg_object *o)
{
    o->prev = NULL;
    o->next = *list_of;
    if (o->next)
        o->next->prev = o;
    *list_of = o;
}

static void unlist(struct pkg_object **list_of, struct pkg_object *o)
{
    if (o->next)
        o->next->prev = o->prev;
    if (o->prev)
        o->prev->next = o->next;
    else
        *list_of = o->next;
}

/* ---- handles ---- */

struct pkg_object *pkg_object_keep(struct pkg_object *o)
{
    if (o)
        atomic_fetch_add(&o->refs, 1);
    return o;
}

static void free_object(struct pkg_object *o)
{
    release_heap(o->heap);
    free(o);
}

void pkg_heap_ring(struct pkg_heap *heap)
{
    atomic_store(&heap->due, true);
    if (!atomic_exchange(&heap->rung, true))
        heap->ring(heap);
}

/* The record stays until the heap has settled, as the table may lead to it until then. */
void pkg_object_release(struct pkg_object *o)
{
    struct pkg_heap *heap;
    bool linked;

    if (!o || atomic_fetch_sub(&o->refs, 1) != 1)
        return;
    heap = o->heap;
    pthread_mutex_lock(&heap->lock);
    linked = o->native && !heap->ended;
    if (linked) {
        exti_link_died(heap->links, o->number);
        unlist(&heap->alive, o);
        list(&heap->released, o);
        pkg_heap_ring(heap);
    }
    pthread_mutex_unlock(&heap->lock);
    if (!linked)
        free_object(o);
}

/* One whose last reference is gone is not brought back. */
static bool keep_alive(struct pkg_object *o)
{
    size_t n = atomic_load(&o->refs);

    while (n && !atomic_compare_exchange_weak(&o->refs, &n, n + 1))
        continue;
    return n != 0;
}

struct pkg_object *pkg_object_find(struct pkg_heap *heap, const void *native)
{
    struct pkg_object *o = (struct pkg_object *)exti_link_to_host(heap->links, native);

    return o && o->heap == heap && keep_alive(o) ? o : NULL;
}

struct pkg_object *pkg_object_new(struct pkg_heap *heap, void *native)
{
    struct pkg_object *o = heap->ended ? NULL : calloc(1, sizeof *o);

    if (!o)
        return NULL;
    if (exti_link_native(heap->links, (exti_host_word)o, native) < 0) {
        free(o);
        return NULL;
    }
    atomic_init(&o->refs, 1);
    atomic_fetch_add(&heap->refs, 1);
    o->heap = heap;
    o->native = native;
    o->number = exti_link_number(heap->links, native);
    o->copies = true;
    atomic_fetch_add(&heap->heaps->count, 1);
    pthread_mutex_lock(&heap->lock);
    list(&heap->alive, o);
    pthread_mutex_unlock(&heap->lock);
    return o;
}

/* ---- what becomes of released ones ---- */

static void free_all(struct pkg_object *o)
{
    struct pkg_object *next;

    for (; o; o = next) {
        next = o->next;
        free_object(o);
    }
}

void pkg_heap_settle_locked(struct pkg_heap *heap)
{
    atomic_store(&heap->due, false);
    if (!heap->ended)
        atomic_fetch_sub(&heap->heaps->count, exti_links_settle(heap->links));
    free_all(heap->released);
    heap->released = NULL;
}

void pkg_heap_settle(struct pkg_heap *heap)
{
    pthread_mutex_lock(&heap->lock);
    pkg_heap_settle_locked(heap);
    pthread_mutex_unlock(&heap->lock);
}

void pkg_object_end(struct pkg_object *o)
{
    unlist(&o->heap->alive, o);
    o->native = NULL;
    atomic_fetch_sub(&o->heap->heaps->count, 1);
}

void pkg_heap_end(struct pkg_heap *heap)
{
    struct pkg_heaps *heaps = heap->heaps;

    pthread_mutex_lock(&heaps->lock);
    unlist_heap(heap);
    pthread_mutex_unlock(&heaps->lock);
    pthread_mutex_lock(&heap->lock);
    for (struct pkg_object *o = heap->alive; o; o = o->next) {
        exti_link_died(heap->links, o->number);
        o->native = NULL;
    }
    heap->alive = NULL;
    pkg_heap_settle_locked(heap);
    heap->ended = true;
    pthread_mutex_unlock(&heap->lock);
}

void pkg_heap_close(struct pkg_heap *heap)
{
    exti_links_close(heap->links);
    heap->links = NULL;
    release_heap(heap);
}

/* With the lock of the list. */
static struct pkg_heap *find_heap(const struct pkg_heaps *heaps, uint64_t id)
{
    struct pkg_heap *heap = heaps->first;

    while (heap && heap->id != id)
        heap = heap->next;
    return heap;
}

void pkg_heap_abandon(struct pkg_heaps *heaps, uint64_t id)
{
    struct pkg_heap *heap;

    pthread_mutex_lock(&heaps->lock);
    heap = find_heap(heaps, id);
    if (heap)
        unlist_heap(heap);
    pthread_mutex_unlock(&heaps->lock);
    if (!heap)
        return;
    pthread_mutex_lock(&heap->lock);
    for (struct pkg_object *o = heap->alive; o; o = o->next)
        o->native = NULL;
    heap->alive = NULL;
    heap->ended = true;
    pthread_mutex_unlock(&heap->lock);
    release_heap(heap);
}
