#define _GNU_SOURCE
#include "runtime/arenas.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

/* What its first bytes are while it is kept. */
struct kept {
    struct kept *next;
    size_t size;
};

/* Objects/obmalloc.c: an arena has 1 MB, and 256 KB before 3.10.  Other sizes are stacks of frames
 * (Python/pystate.c). */
#define LEAST ((size_t)256 << 10)
#define LARGEST ((size_t)1 << 20)
#define MOST ((size_t)32 << 20)

/* Of x86-64, and of arm64 with pages of 4 KB.  All of it is there from its first use on, so a heap
 * takes up to 1 MB more than it needs.  A large heap may, and all while they are few. */
#define HUGE_PAGE ((size_t)2 << 20)
#define FEW ((size_t)32 << 20)
#define LARGE_HEAP ((size_t)16 << 20)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kept *oldest, **newest = &oldest; /* where the next one comes */
static size_t kept_bytes, used_bytes;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static int fork_error;

static void lock_arenas(void)
{
    pthread_mutex_lock(&lock);
}

static void unlock_arenas(void)
{
    pthread_mutex_unlock(&lock);
}

/* A lock that another thread holds at a fork would stay locked in the child. */
static void register_fork_handlers(void)
{
    fork_error = pthread_atfork(lock_arenas, unlock_arenas, unlock_arenas);
}

/* Takes it out of the list.  The lock is held. */
static struct kept *take_from(struct kept **link)
{
    struct kept *k = *link;

    *link = k->next;
    if (!k->next)
        newest = link;
    kept_bytes -= k->size;
    return k;
}

/* The lock is held. */
static struct kept *find_kept(size_t size)
{
    struct kept **link = &oldest;

    while (*link && (*link)->size != size)
        link = &(*link)->next;
    return *link ? take_from(link) : NULL;
}

/* The lock is held. */
static void keep(void *arena, size_t size)
{
    struct kept *k = arena;

    *k = (struct kept){NULL, size};
    *newest = k;
    newest = &k->next;
    kept_bytes += size;
}

/* Unmaps the oldest until no more than `most` bytes are kept. */
static void drop(size_t most)
{
    struct kept *dropped = NULL, *k;

    pthread_mutex_lock(&lock);
    while (kept_bytes > most || kept_bytes > used_bytes) {
        k = take_from(&oldest);
        k->next = dropped;
        dropped = k;
    }
    pthread_mutex_unlock(&lock);
    while ((k = dropped)) {
        dropped = k->next;
        munmap(k, k->size);
    }
}

static void *map(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return at == MAP_FAILED ? NULL : at;
}

/* Maps it at an address that is a multiple of its size, and asks for one page for all of it.  Where
 * the system has none it is made of small ones. */
static char *map_huge_page(void)
{
    char *at = map(2 * HUGE_PAGE), *page;

    if (!at)
        return NULL;
    page = at + (HUGE_PAGE - (uintptr_t)at % HUGE_PAGE) % HUGE_PAGE;
    if (page > at)
        munmap(at, (size_t)(page - at));
    if (page < at + HUGE_PAGE)
        munmap(page + HUGE_PAGE, (size_t)(at + HUGE_PAGE - page));
#ifdef MADV_HUGEPAGE
    madvise(page, HUGE_PAGE, MADV_HUGEPAGE);
#endif
    return page;
}

/* Makes arenas of a huge page, and keeps those after the first. */
static void *cut_huge_page(size_t size)
{
    char *page = map_huge_page();

    if (!page)
        return NULL;
    *page = 0; /* the kernel clears it here, where nobody waits for the lock */
    pthread_mutex_lock(&lock);
    for (size_t at = size; at < HUGE_PAGE; at += size)
        keep(page + at, size);
    pthread_mutex_unlock(&lock);
    return page;
}

static bool is_arena(size_t size)
{
    return size >= LEAST && size <= LARGEST;
}

void *pyrt_arena_take(size_t size, size_t has)
{
    void *at = NULL;
    bool huge = false;

    pthread_once(&fork_once, register_fork_handlers);
    if (fork_error)
        return NULL;
    if (is_arena(size)) {
        pthread_mutex_lock(&lock);
        at = find_kept(size);
        used_bytes += size;
        huge = HUGE_PAGE % size == 0 && (used_bytes <= FEW || has >= LARGE_HEAP);
        pthread_mutex_unlock(&lock);
    }
    if (!at)
        at = huge ? cut_huge_page(size) : map(size);
    if (!at) {
        drop(0);
        at = map(size);
    }
    if (!at && is_arena(size)) {
        pthread_mutex_lock(&lock);
        used_bytes -= size;
        pthread_mutex_unlock(&lock);
    }
    return at;
}

void pyrt_arena_give(void *arena, size_t size)
{
    if (!is_arena(size)) {
        munmap(arena, size);
        return;
    }
    pthread_mutex_lock(&lock);
    keep(arena, size);
    used_bytes -= size;
    pthread_mutex_unlock(&lock);
    drop(MOST);
}
