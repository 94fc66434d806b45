/* The process's one table of context modules by address.  The functions that copies are redirected
 * to get no other hint of whose call it is than the address they return to, so the table is global. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/os/path.h"
#include "loader/track/lingering.h"
#include "loader/track/module.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct exti_module **modules; /* by ascending address */
static size_t count, cap;

#ifndef _WIN32 /* which has no fork */
/* Another thread may hold the lock at the moment of a fork, and is not there in the child to give it
 * back. */
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static int fork_error;

static void lock_for_fork(void)
{
    pthread_rwlock_wrlock(&lock);
}

static void unlock_after_fork(void)
{
    pthread_rwlock_unlock(&lock);
}

/* Unlocked only, it would go on counting those who were waiting for it. */
static void renew_lock(void)
{
    pthread_rwlock_unlock(&lock);
    pthread_rwlock_init(&lock, NULL);
}

static void prepare_for_forks(void)
{
    fork_error = pthread_atfork(lock_for_fork, unlock_after_fork, renew_lock);
    if (!fork_error)
        fork_error = exti__lingering_survive_forks();
}

int exti__address_map_survive_forks(struct exti_error *err)
{
    pthread_once(&fork_once, prepare_for_forks);
    return fork_error ? exti__fail_nomem(err) : 0;
}
#else
int exti__address_map_survive_forks(struct exti_error *err)
{
    (void)err;
    return 0;
}
#endif

/* The modules that this thread is closing: their finalisers still run, but where they lay another thread
 * may be mapping the next as soon as they have. */
static _Thread_local const struct exti_module *finishing;

/* How many modules begin at or below `address`. */
static size_t position(uintptr_t address)
{
    size_t lo = 0, hi = count;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (modules[mid]->layout.lo <= address)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

int exti__address_map_add(struct exti_module *m, struct exti_error *err)
{
    size_t at;
    int rc = 0;

    pthread_rwlock_wrlock(&lock);
    if (count == cap) {
        size_t more = cap ? cap * 2 : 64;
        struct exti_module **p = exti__realloc_array(modules, more, sizeof *p);

        if (p) {
            modules = p;
            cap = more;
        } else {
            rc = exti__fail_nomem(err);
        }
    }
    if (!rc) {
        at = position(m->layout.lo);
        memmove(&modules[at + 1], &modules[at], (count - at) * sizeof *modules);
        modules[at] = m;
        count++;
    }
    pthread_rwlock_unlock(&lock);
    if (!rc)
        exti__lingering_forget_range(&m->layout);
    return rc;
}

void exti__address_map_remove(struct exti_module *m)
{
    size_t at;

    exti__lingering_add(m);
    pthread_rwlock_wrlock(&lock);
    /* Two threads that load one file at once each register it for a moment. */
    for (at = position(m->layout.lo); at && modules[at - 1] != m; at--)
        ;
    if (at) {
        count--;
        memmove(&modules[at - 1], &modules[at], (count - (at - 1)) * sizeof *modules);
    }
    if (!count) {
        exti__free(modules);
        modules = NULL;
        cap = 0;
    }
    pthread_rwlock_unlock(&lock);
}

const struct exti_module *exti__address_map_unloading(const struct exti_module *list)
{
    const struct exti_module *before = finishing;

    finishing = list;
    return before;
}

static bool contains(const struct exti_module *m, uintptr_t address)
{
    return address >= m->layout.lo && address < m->layout.hi;
}

static const struct exti_module *find_finishing(uintptr_t address)
{
    const struct exti_module *m = finishing;

    while (m && !contains(m, address))
        m = m->older;
    return m;
}

static struct exti_module describe(const struct exti_module *m)
{
    return (struct exti_module){.ctx = m->ctx,
                                .handle = m->handle,
                                .original = m->original,
                                .lib = m->lib,
                                .layout = m->layout};
}

bool exti__address_map_find(uintptr_t address, struct exti_module *out)
{
    const struct exti_module *m = NULL;
    size_t at;

    pthread_rwlock_rdlock(&lock);
    at = position(address);
    if (at && contains(modules[at - 1], address))
        m = modules[at - 1];
    else
        m = find_finishing(address);
    if (m)
        *out = describe(m);
    pthread_rwlock_unlock(&lock);
    return m != NULL;
}

bool exti__address_map_find_copy(const struct exti_ctx *ctx, const char *source,
                                 struct exti_module *out)
{
    bool found = false;

    pthread_rwlock_rdlock(&lock);
    for (size_t i = 0; i < count && !found; i++) {
        found = modules[i]->ctx == ctx && strcmp(modules[i]->original, source) == 0;
        if (found)
            *out = describe(modules[i]);
    }
    pthread_rwlock_unlock(&lock);
    return found;
}

bool exti__address_map_original(const char *copy, char *out, size_t size)
{
    bool found = false;

    pthread_rwlock_rdlock(&lock);
    for (size_t i = 0; i < count && !found; i++) {
        found = strcmp(modules[i]->copy, copy) == 0;
        if (found)
            snprintf(out, size, "%s", modules[i]->original);
    }
    pthread_rwlock_unlock(&lock);
    return found || exti__lingering_original(copy, out, size);
}

bool exti__address_map_has_namesake(const struct exti_module *m)
{
    const char *name = exti__base_name(m->copy);
    bool found = false;

    pthread_rwlock_rdlock(&lock);
    for (size_t i = 0; i < count && !found; i++)
        found = modules[i]->ctx != m->ctx && strcmp(exti__base_name(modules[i]->copy), name) == 0;
    pthread_rwlock_unlock(&lock);
    return found;
}
