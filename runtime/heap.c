#define _GNU_SOURCE
#include "runtime/heap.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/arenas.h"
#include "runtime/fail.h"
#include "runtime/system.h"

/* An empty slot has no address. */
struct block {
    void *at;
    size_t mapped; /* an arena's size; 0: from malloc */
};

/* A hash table of the blocks by address, with open addressing, at most half full.  Headers before
 * the blocks would not do: CPython frees some that it allocated before pyrt_heap_install. */
struct pyrt_heap {
    pthread_mutex_t lock; /* raw memory is allocated without the GIL */
    struct block *slots;
    size_t mask, used;
    size_t bytes; /* of the blocks */
    struct pyrt_heap *next;
};

#define FIRST_SLOTS 4096u

/* All heaps, to lock them around fork: a lock that another thread holds at that moment would stay
 * locked in the child. */
static struct pyrt_heap *heaps;
static pthread_mutex_t heaps_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static int fork_error;

static void lock_all(void)
{
    pthread_mutex_lock(&heaps_lock);
    for (struct pyrt_heap *h = heaps; h; h = h->next)
        pthread_mutex_lock(&h->lock);
}

static void unlock_all(void)
{
    for (struct pyrt_heap *h = heaps; h; h = h->next)
        pthread_mutex_unlock(&h->lock);
    pthread_mutex_unlock(&heaps_lock);
}

static void register_fork_handlers(void)
{
    fork_error = pthread_atfork(lock_all, unlock_all, unlock_all);
}

/* ---- the table; callers hold the lock ---- */

static size_t home_slot(const struct pyrt_heap *h, const void *at)
{
    return (size_t)(((uint64_t)(uintptr_t)at * 0x9E3779B97F4A7C15u) >> 20) & h->mask;
}

/* Returns the slot of the block, or the empty one where it would be. */
static struct block *find_slot(const struct pyrt_heap *h, const void *at)
{
    size_t i = home_slot(h, at);

    while (h->slots[i].at && h->slots[i].at != at)
        i = (i + 1) & h->mask;
    return &h->slots[i];
}

static void put_block(struct pyrt_heap *h, void *at, size_t mapped)
{
    *find_slot(h, at) = (struct block){at, mapped};
    h->used++;
}

static int reserve_slot(struct pyrt_heap *h)
{
    struct pyrt_heap grown = {.mask = h->mask * 2 + 1};

    if ((h->used + 1) * 2 <= h->mask)
        return 0;
    grown.slots = calloc(grown.mask + 1, sizeof *grown.slots);
    if (!grown.slots)
        return -1;
    for (size_t i = 0; i <= h->mask; i++)
        if (h->slots[i].at)
            put_block(&grown, h->slots[i].at, h->slots[i].mapped);
    free(h->slots);
    h->slots = grown.slots;
    h->mask = grown.mask;
    return 0;
}

/* Moves following entries up, so that a search does not stop at the gap. */
static void erase_block(struct pyrt_heap *h, struct block *b)
{
    size_t gap = (size_t)(b - h->slots);

    for (size_t i = (gap + 1) & h->mask; h->slots[i].at; i = (i + 1) & h->mask) {
        size_t from = home_slot(h, h->slots[i].at);

        if (((i - from) & h->mask) >= ((i - gap) & h->mask)) {
            h->slots[gap] = h->slots[i];
            gap = i;
        }
    }
    h->slots[gap] = (struct block){0};
    h->used--;
}

/* ---- what the blocks take; callers hold the lock ---- */

static size_t block_size(const struct block *b)
{
    return b->mapped ? b->mapped : pyrt_block_size(b->at);
}

static void add_block(struct pyrt_heap *h, void *at, size_t mapped)
{
    const struct block b = {at, mapped};

    put_block(h, at, mapped);
    h->bytes += block_size(&b);
}

static void drop_block(struct pyrt_heap *h, struct block *b)
{
    h->bytes -= block_size(b);
    erase_block(h, b);
}

/* ---- allocator functions, called by CPython ---- */

static void *track_block(struct pyrt_heap *h, void *at, size_t mapped)
{
    int rc;

    if (!at)
        return NULL;
    pthread_mutex_lock(&h->lock);
    rc = reserve_slot(h);
    if (rc == 0)
        add_block(h, at, mapped);
    pthread_mutex_unlock(&h->lock);
    if (rc == 0)
        return at;
    if (mapped)
        pyrt_arena_give(at, mapped);
    else
        free(at);
    return NULL;
}

static int untrack_block(struct pyrt_heap *h, const void *at)
{
    struct block *b;
    int known;

    pthread_mutex_lock(&h->lock);
    b = find_slot(h, at);
    known = b->at != NULL;
    if (known)
        drop_block(h, b);
    pthread_mutex_unlock(&h->lock);
    return known;
}

/* As in CPython's own raw allocator, a request for 0 bytes gets 1. */
static void *heap_malloc(void *h, size_t size)
{
    return track_block(h, malloc(size ? size : 1), 0);
}

static void *heap_calloc(void *h, size_t count, size_t size)
{
    return track_block(h, count && size ? calloc(count, size) : calloc(1, 1), 0);
}

static void heap_free(void *h, void *at)
{
    if (at)
        untrack_block(h, at);
    free(at);
}

static void *heap_realloc(void *h, void *at, size_t size)
{
    struct pyrt_heap *heap = h;
    struct block *b;
    size_t before;
    void *moved;
    int known;

    if (!at)
        return heap_malloc(h, size);
    /* Under the lock, as another thread may get the old address from malloc.  Re-adding cannot
     * fail, because a slot has just become free. */
    pthread_mutex_lock(&heap->lock);
    b = find_slot(heap, at);
    known = b->at != NULL;
    before = known ? block_size(b) : 0;
    moved = realloc(at, size ? size : 1);
    if (moved && known) {
        erase_block(heap, b);
        heap->bytes -= before;
        add_block(heap, moved, 0);
    }
    pthread_mutex_unlock(&heap->lock);
    return moved;
}

static void *arena_alloc(void *h, size_t size)
{
    return track_block(h, pyrt_arena_take(size, pyrt_heap_bytes(h)), size);
}

static void arena_free(void *h, void *at, size_t size)
{
    untrack_block(h, at);
    pyrt_arena_give(at, size);
}

/* ---- the heap ---- */

int pyrt_heap_new(struct pyrt_heap **out, struct exti_error *err)
{
    struct pyrt_heap *h = calloc(1, sizeof *h);

    pthread_once(&fork_once, register_fork_handlers);
    if (h)
        h->slots = calloc(FIRST_SLOTS, sizeof *h->slots);
    if (!h || !h->slots || fork_error) {
        if (h)
            free(h->slots);
        free(h);
        return pyrt_fail(err, EXTI_E_NOMEM, "out of memory");
    }
    h->mask = FIRST_SLOTS - 1;
    pthread_mutex_init(&h->lock, NULL);
    pthread_mutex_lock(&heaps_lock);
    h->next = heaps;
    heaps = h;
    pthread_mutex_unlock(&heaps_lock);
    *out = h;
    return 0;
}

void pyrt_heap_install(struct pyrt_heap *h, const struct pyrt_api *py)
{
    struct pyrt_allocator ours = {h, heap_malloc, heap_calloc, heap_realloc, heap_free};
    struct pyrt_arenas arenas = {h, arena_alloc, arena_free};
    struct pyrt_allocator raw, others;

    py->PyMem_GetAllocator(PYRT_DOMAIN_RAW, &raw);
    for (int domain = PYRT_DOMAIN_RAW; domain <= PYRT_DOMAIN_OBJ; domain++) {
        py->PyMem_GetAllocator(domain, &others);
        /* PYTHONMALLOC=malloc */
        if (others.malloc == raw.malloc)
            py->PyMem_SetAllocator(domain, &ours);
    }
    /* An allocator with a context is that of the debug hooks; wraps the new one in them, too. */
    if (raw.ctx)
        py->PyMem_SetupDebugHooks();
    py->PyObject_SetArenaAllocator(&arenas);
}

size_t pyrt_heap_bytes(struct pyrt_heap *h)
{
    size_t bytes;

    if (!h)
        return 0;
    pthread_mutex_lock(&h->lock);
    bytes = h->bytes;
    pthread_mutex_unlock(&h->lock);
    return bytes;
}

void pyrt_heap_free(struct pyrt_heap *h)
{
    struct pyrt_heap **link = &heaps;

    if (!h)
        return;
    pthread_mutex_lock(&heaps_lock);
    while (*link != h)
        link = &(*link)->next;
    *link = h->next;
    pthread_mutex_unlock(&heaps_lock);
    for (size_t i = 0; i <= h->mask; i++) {
        if (h->slots[i].mapped)
            pyrt_arena_give(h->slots[i].at, h->slots[i].mapped);
        else
            free(h->slots[i].at);
    }
    pthread_mutex_destroy(&h->lock);
    free(h->slots);
    free(h);
}
