/* The process's table of copies that outlive their modules. */
#include "loader/track/lingering.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "loader/track/module.h"

struct ghost {
    const struct exti_ctx *ctx; /* NULL: it is freed */
    uintptr_t lo, hi;
    uint64_t seen;        /* the last sweep that is known to have begun before it was unmapped */
    const char *original; /* behind the copy's path */
    char copy[];
};

/* Never held while the system's loader is asked for anything: it calls back with locks of its own. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ghost **ghosts; /* by ascending address; none overlap, as what is mapped does not */
static size_t count, cap;
static uint64_t sweeps; /* that have begun */

/* ---- fork ---- */

static void lock_for_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void unlock_after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

int exti__lingering_survive_forks(void)
{
    return pthread_atfork(lock_for_fork, unlock_after_fork, unlock_after_fork);
}

/* ---- the table; the lock is held ---- */

/* How many begin at or below `address`. */
static size_t position(uintptr_t address)
{
    size_t lo = 0, hi = count;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (ghosts[mid]->lo <= address)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static struct ghost *find(uintptr_t address, const char *path)
{
    const size_t at = position(address);

    return at && address < ghosts[at - 1]->hi && strcmp(ghosts[at - 1]->copy, path) == 0
               ? ghosts[at - 1]
               : NULL;
}

static void remove_some(size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        exti__free(ghosts[i]);
    if (to > from)
        memmove(&ghosts[from], &ghosts[to], (count - to) * sizeof *ghosts);
    count -= to - from;
    if (!count) {
        exti__free(ghosts);
        ghosts = NULL;
        cap = 0;
    }
}

static void bury(uintptr_t lo, uintptr_t hi)
{
    size_t from = position(lo), to;

    if (from && lo < ghosts[from - 1]->hi)
        from--;
    for (to = from; to < count && ghosts[to]->lo < hi; to++)
        ;
    remove_some(from, to);
}

static bool insert(struct ghost *g)
{
    size_t at;

    if (count == cap) {
        size_t more = cap ? cap * 2 : 64;
        struct ghost **p = exti__realloc_array(ghosts, more, sizeof *p);

        if (!p)
            return false;
        ghosts = p;
        cap = more;
    }
    at = position(g->lo);
    memmove(&ghosts[at + 1], &ghosts[at], (count - at) * sizeof *ghosts);
    ghosts[at] = g;
    count++;
    return true;
}

/* ---- coming and going ---- */

void exti__lingering_add(const struct exti_module *m)
{
    const size_t copy_size = strlen(m->copy) + 1, original_size = strlen(m->original) + 1;
    struct ghost *g = exti__alloc(sizeof *g + copy_size + original_size);
    bool ok;

    if (!g)
        return;
    *g = (struct ghost){.ctx = m->ctx, .lo = m->layout.lo, .hi = m->layout.hi};
    memcpy(g->copy, m->copy, copy_size);
    g->original = memcpy(g->copy + copy_size, m->original, original_size);
    pthread_mutex_lock(&lock);
    bury(g->lo, g->hi);
    g->seen = sweeps;
    ok = insert(g);
    pthread_mutex_unlock(&lock);
    if (!ok)
        exti__free(g);
}

void exti__lingering_forget_range(const struct exti_layout *layout)
{
    pthread_mutex_lock(&lock);
    bury(layout->lo, layout->hi);
    pthread_mutex_unlock(&lock);
}

void exti__lingering_forget_ctx(const struct exti_ctx *ctx)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count; i++)
        if (ghosts[i]->ctx == ctx)
            ghosts[i]->ctx = NULL;
    pthread_mutex_unlock(&lock);
}

static int mark(void *user, const struct exti_loaded *lib, const struct exti_layout *layout)
{
    const uint64_t *sweep = user;
    struct ghost *g;

    (void)layout;
    pthread_mutex_lock(&lock);
    g = find(lib->inside, lib->path);
    if (g && g->seen < *sweep)
        g->seen = *sweep;
    pthread_mutex_unlock(&lock);
    return 0;
}

/* Others may sweep meanwhile, and what is unloaded meanwhile may have been seen: then whoever unloads it
 * sweeps afterwards. */
void exti__lingering_sweep(void)
{
    uint64_t sweep = 0;

    pthread_mutex_lock(&lock);
    if (count)
        sweep = ++sweeps;
    pthread_mutex_unlock(&lock);
    if (!sweep)
        return;
    exti__loaded_each(mark, &sweep);
    pthread_mutex_lock(&lock);
    for (size_t i = count; i--;)
        if (ghosts[i]->seen < sweep)
            remove_some(i, i + 1);
    pthread_mutex_unlock(&lock);
}

/* ---- asking ---- */

bool exti__lingering_is_others(const struct exti_ctx *ctx, uintptr_t address, const char *path)
{
    const struct ghost *g;
    bool is;

    pthread_mutex_lock(&lock);
    g = find(address, path);
    is = g && g->ctx != ctx;
    pthread_mutex_unlock(&lock);
    return is;
}

static bool look_up(const char *copy, char *out, size_t size)
{
    bool found = false;

    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count && !found; i++) {
        found = strcmp(ghosts[i]->copy, copy) == 0;
        if (found)
            snprintf(out, size, "%s", ghosts[i]->original);
    }
    pthread_mutex_unlock(&lock);
    return found;
}

/* What held it may have let go of it since, and another file may lie at the path. */
bool exti__lingering_original(const char *copy, char *out, size_t size)
{
    if (!look_up(copy, out, size))
        return false;
    exti__lingering_sweep();
    return look_up(copy, out, size);
}
