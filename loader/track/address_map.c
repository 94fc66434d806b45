/* The table is the process's: the functions that copies call know their caller's context only by
 * the address that they return to. */
#include "loader/track/address_map.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/path.h"
#include "loader/track/fork_lock.h"
#include "loader/track/lingering.h"

/* Guards the table.  May be taken with any other lock of the library held; none is taken under
 * it. */
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
/* The thread writes the table, or is about to: then a signal handler, which looks addresses up
 * for a backtrace, must not wait to read it. */
static _Thread_local volatile sig_atomic_t writing;
static struct exti_module **modules; /* by ascending address */
static size_t count, cap;
atomic_ulong exti__address_map_changes;

static void lock_map(void)
{
    writing = 1;
    exti__fork_lock_enter();
    pthread_rwlock_wrlock(&lock);
}

static void unlock_map(void)
{
    pthread_rwlock_unlock(&lock);
    exti__fork_lock_leave();
    writing = 0;
}

static void lock_to_read(void)
{
    exti__fork_lock_enter();
    pthread_rwlock_rdlock(&lock);
}

static void unlock_after_reading(void)
{
    pthread_rwlock_unlock(&lock);
    exti__fork_lock_leave();
}

#ifndef _WIN32 /* which has no fork */
/* Another thread may hold the lock at the moment of a fork, and does not exist in the child to
 * release it. */
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static int fork_error;

/* In the child: merely unlocked, the lock would still count the threads that were waiting for
 * it. */
static void renew_map_lock(void)
{
    pthread_rwlock_unlock(&lock);
    pthread_rwlock_init(&lock, NULL);
    exti__fork_lock_leave();
    writing = 0;
}

static void install_map_fork_handlers(void)
{
    fork_error = pthread_atfork(lock_map, unlock_map, renew_map_lock);
    if (!fork_error)
        fork_error = exti__lingering_survive_forks();
}

int exti__address_map_survive_forks(struct exti_error *err)
{
    pthread_once(&fork_once, install_map_fork_handlers);
    return fork_error ? exti__fail_nomem(err) : 0;
}
#else
int exti__address_map_survive_forks(struct exti_error *err)
{
    (void)err;
    return 0;
}
#endif

/* The modules that this thread is closing.  Their finalisers still run and are to be found, but
 * another thread may map its next library in their place as soon as they are gone. */
static _Thread_local const struct exti_module *unloading;

static uintptr_t module_start(const void *item)
{
    return (*(struct exti_module *const *)item)->layout.lo;
}

static size_t count_modules_up_to(uintptr_t address)
{
    return exti__count_up_to(modules, count, sizeof *modules, module_start, address);
}

/* Makes the table larger than it is.  Nothing is allocated or freed under the lock: a signal
 * handler that has interrupted malloc may wait for it. */
static bool grow_table(void)
{
    struct exti_module **larger, **old;
    size_t room;

    lock_to_read();
    room = cap * 2 + 8;
    unlock_after_reading();
    larger = exti__calloc(room, sizeof *larger);
    if (!larger)
        return false;
    lock_map();
    old = larger;
    if (cap < room) {
        old = modules;
        if (count)
            memcpy(larger, modules, count * sizeof *larger);
        modules = larger;
        cap = room;
    }
    unlock_map();
    exti__free(old);
    return true;
}

/* False if there is no room. */
static bool insert_module(struct exti_module *m)
{
    size_t at;
    bool room;

    lock_map();
    room = count < cap;
    if (room) {
        at = count_modules_up_to(m->layout.lo);
        memmove(&modules[at + 1], &modules[at], (count - at) * sizeof *modules);
        modules[at] = m;
        count++;
        atomic_fetch_add(&exti__address_map_changes, 1);
    }
    unlock_map();
    return room;
}

int exti__address_map_add(struct exti_module *m, struct exti_error *err)
{
    while (!insert_module(m))
        if (!grow_table())
            return exti__fail_nomem(err);
    exti__lingering_forget_range(&m->layout);
    return 0;
}

void exti__address_map_remove(struct exti_module *m)
{
    struct exti_module **empty = NULL;
    size_t at;

    exti__lingering_add(m);
    lock_map();
    /* Two threads that load one file at once each add a module for it, for a moment. */
    for (at = count_modules_up_to(m->layout.lo); at && modules[at - 1] != m; at--)
        ;
    if (at) {
        count--;
        memmove(&modules[at - 1], &modules[at], (count - (at - 1)) * sizeof *modules);
        atomic_fetch_add(&exti__address_map_changes, 1);
    }
    if (!count) {
        empty = modules;
        modules = NULL;
        cap = 0;
    }
    unlock_map();
    exti__free(empty);
}

const struct exti_module *exti__address_map_unloading(const struct exti_module *list)
{
    const struct exti_module *before = unloading;

    unloading = list;
    return before;
}

static bool contains(const struct exti_module *m, uintptr_t address)
{
    return address >= m->layout.lo && address < m->layout.hi;
}

static const struct exti_module *find_unloading(uintptr_t address)
{
    const struct exti_module *m = unloading;

    while (m && !contains(m, address))
        m = m->older;
    return m;
}

bool exti__address_map_is_unloading(uintptr_t address)
{
    return find_unloading(address) != NULL;
}

static struct exti_module public_part(const struct exti_module *m)
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

    if (writing)
        return false;
    lock_to_read();
    at = count_modules_up_to(address);
    if (at && contains(modules[at - 1], address))
        m = modules[at - 1];
    else
        m = find_unloading(address);
    if (m)
        *out = public_part(m);
    unlock_after_reading();
    return m != NULL;
}

/* ---- the module that the thread has asked for last ---- */

_Thread_local struct exti_last_found exti__last_found;

static void remember(const struct exti_module *m, unsigned long at)
{
    struct exti_last_found *last = &exti__last_found;

    if (last->writing)
        return;
    last->writing = 1;
    last->size = 0;
    last->ctx = m->ctx;
    last->changes = at;
    last->lo = m->layout.lo;
    last->size = m->layout.hi - m->layout.lo;
    last->writing = 0;
}

struct exti_ctx *exti__address_map_find_ctx(uintptr_t address)
{
    const unsigned long at = atomic_load(&exti__address_map_changes);
    struct exti_module m;

    if (!exti__address_map_find(address, &m))
        return NULL;
    /* What is being closed is not in the table, where another thread's may be next. */
    if (!unloading)
        remember(&m, at);
    return m.ctx;
}

bool exti__address_map_find_copy(const struct exti_ctx *ctx, const char *source,
                                 struct exti_module *out)
{
    bool found = false;

    lock_to_read();
    for (size_t i = 0; i < count && !found; i++) {
        found = modules[i]->ctx == ctx && strcmp(modules[i]->original, source) == 0;
        if (found)
            *out = public_part(modules[i]);
    }
    unlock_after_reading();
    return found;
}

bool exti__address_map_original(const char *copy, char *out, size_t size)
{
    bool found = false;

    lock_to_read();
    for (size_t i = 0; i < count && !found; i++) {
        found = strcmp(modules[i]->copy, copy) == 0;
        if (found)
            snprintf(out, size, "%s", modules[i]->original);
    }
    unlock_after_reading();
    return found || exti__lingering_original(copy, out, size);
}

bool exti__address_map_has_namesake(const struct exti_module *m)
{
    const char *name = exti__base_name(m->copy);
    bool found = false;

    lock_to_read();
    for (size_t i = 0; i < count && !found; i++)
        found = modules[i]->ctx != m->ctx && strcmp(exti__base_name(modules[i]->copy), name) == 0;
    unlock_after_reading();
    return found;
}

/* ---- claims ---- */

static struct exti_ctx *claims; /* linked by next_claim; guarded by the lock */

bool exti__address_map_claim(struct exti_ctx *ctx, const char *api_copy)
{
    struct exti_ctx *c;

    lock_map();
    for (c = claims; c && strcmp(c->claimed, api_copy) != 0; c = c->next_claim)
        ;
    if (!c) {
        ctx->claimed = api_copy;
        ctx->next_claim = claims;
        claims = c = ctx;
    }
    unlock_map();
    return c == ctx;
}

void exti__address_map_unclaim(struct exti_ctx *ctx)
{
    struct exti_ctx **link = &claims;

    lock_map();
    while (*link && *link != ctx)
        link = &(*link)->next_claim;
    if (*link)
        *link = ctx->next_claim;
    unlock_map();
}
