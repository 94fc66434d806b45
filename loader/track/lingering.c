#include "loader/track/lingering.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "loader/track/fork_lock.h"
#include "loader/track/module.h"

struct lingering {
    const struct exti_ctx *ctx; /* NULL once that is freed */
    uintptr_t lo, hi;
    uint64_t seen;        /* the last sweep that began while it was mapped, as far as is known */
    const char *original; /* in `copy`, behind the copy's path */
    char copy[];
};

/* Guards the table.  Taken with no lock of the library held but the system's loader's; none is
 * taken under it, and the system's loader is asked for nothing: it calls back with its own locks
 * held. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct lingering **table; /* owned; by ascending address, without overlap */
static size_t count, cap;
static uint64_t sweeps; /* begun so far */

/* The thread has the lock, or is about to: then a signal handler must not wait for it. */
static _Thread_local volatile sig_atomic_t has_lock;

static void lock_lingering(void)
{
    has_lock = 1;
    exti__fork_lock(&lock);
}

static void unlock_lingering(void)
{
    exti__fork_unlock(&lock);
    has_lock = 0;
}

/* ---- fork ---- */

int exti__lingering_survive_forks(void)
{
    return pthread_atfork(lock_lingering, unlock_lingering, unlock_lingering);
}

/* ---- the table; the lock is held ---- */

static uintptr_t lingering_start(const void *item)
{
    return (*(struct lingering *const *)item)->lo;
}

static size_t count_lingering_up_to(uintptr_t address)
{
    return exti__count_up_to(table, count, sizeof *table, lingering_start, address);
}

static struct lingering *find_lingering(uintptr_t address, const char *path)
{
    const size_t at = count_lingering_up_to(address);

    return at && address < table[at - 1]->hi && strcmp(table[at - 1]->copy, path) == 0
               ? table[at - 1]
               : NULL;
}

static void remove_items(size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        exti__free(table[i]);
    if (to > from)
        memmove(&table[from], &table[to], (count - to) * sizeof *table);
    count -= to - from;
    if (!count) {
        exti__free(table);
        table = NULL;
        cap = 0;
    }
}

static void remove_range(uintptr_t lo, uintptr_t hi)
{
    size_t from = count_lingering_up_to(lo), to;

    if (from && lo < table[from - 1]->hi)
        from--;
    for (to = from; to < count && table[to]->lo < hi; to++)
        ;
    remove_items(from, to);
}

static bool insert_lingering(struct lingering *l)
{
    struct lingering **p = exti__array_room(table, count, &cap, sizeof *table);
    size_t at;

    if (!p)
        return false;
    table = p;
    at = count_lingering_up_to(l->lo);
    memmove(&table[at + 1], &table[at], (count - at) * sizeof *table);
    table[at] = l;
    count++;
    return true;
}

/* ---- coming and going ---- */

void exti__lingering_add(const struct exti_module *m)
{
    const size_t copy_size = strlen(m->copy) + 1, original_size = strlen(m->original) + 1;
    struct lingering *l = exti__alloc(sizeof *l + copy_size + original_size);
    bool ok;

    if (!l)
        return;
    *l = (struct lingering){.ctx = m->ctx, .lo = m->layout.lo, .hi = m->layout.hi};
    memcpy(l->copy, m->copy, copy_size);
    l->original = memcpy(l->copy + copy_size, m->original, original_size);
    lock_lingering();
    remove_range(l->lo, l->hi);
    l->seen = sweeps;
    ok = insert_lingering(l);
    unlock_lingering();
    if (!ok)
        exti__free(l);
}

void exti__lingering_forget_range(const struct exti_layout *layout)
{
    lock_lingering();
    remove_range(layout->lo, layout->hi);
    unlock_lingering();
}

void exti__lingering_forget_ctx(const struct exti_ctx *ctx)
{
    lock_lingering();
    for (size_t i = 0; i < count; i++)
        if (table[i]->ctx == ctx)
            table[i]->ctx = NULL;
    unlock_lingering();
}

static int mark_seen(void *user, const struct exti_loaded *lib, const struct exti_layout *layout)
{
    const uint64_t *sweep = user;
    struct lingering *l;

    (void)layout;
    lock_lingering();
    l = find_lingering(lib->inside, lib->path);
    if (l && l->seen < *sweep)
        l->seen = *sweep;
    unlock_lingering();
    return 0;
}

/* Other threads may sweep meanwhile.  A library that is unloaded after it was seen is found by the
 * next sweep: whoever unloads it sweeps afterwards. */
void exti__lingering_sweep(void)
{
    uint64_t sweep = 0;

    lock_lingering();
    if (count)
        sweep = ++sweeps;
    unlock_lingering();
    if (!sweep)
        return;
    exti__loaded_each(mark_seen, &sweep);
    lock_lingering();
    /* The table goes with the last of them. */
    for (size_t i = count; table && i--;)
        if (table[i]->seen < sweep)
            remove_items(i, i + 1);
    unlock_lingering();
}

void exti__lingering_sweep_others(const struct exti_ctx *ctx)
{
    bool any = false;

    lock_lingering();
    for (size_t i = 0; i < count && !any; i++)
        any = table[i]->ctx != ctx;
    unlock_lingering();
    if (any)
        exti__lingering_sweep();
}

/* ---- queries ---- */

bool exti__lingering_is_others(const struct exti_ctx *ctx, uintptr_t address, const char *path)
{
    const struct lingering *l;
    bool is;

    if (has_lock)
        return false;
    lock_lingering();
    l = find_lingering(address, path);
    is = l && l->ctx != ctx;
    unlock_lingering();
    return is;
}

static bool find_original(const char *copy, char *out, size_t size)
{
    bool found = false;

    lock_lingering();
    for (size_t i = 0; table && i < count && !found; i++) {
        found = strcmp(table[i]->copy, copy) == 0;
        if (found)
            snprintf(out, size, "%s", table[i]->original);
    }
    unlock_lingering();
    return found;
}

/* The copy may have been unmapped since the last sweep, and another file may have its path. */
bool exti__lingering_original(const char *copy, char *out, size_t size)
{
    if (!find_original(copy, out, size))
        return false;
    exti__lingering_sweep();
    return find_original(copy, out, size);
}
