/* libcrypto asks for SSL_CERT_FILE when it is told to load certificates, a GPU's driver for
 * CUDA_VISIBLE_DEVICES when it is first used: programs set these in their own environment, which in
 * a context is not the process's.  What a library asks for in its constructors, it has asked the
 * process for.  The locks of such a library are the process's, too: libcrypto's are held while an
 * algorithm is used for the first time, libsqlite3's for as long as a query runs. */
#include "loader/load/shared_calls.h"

#include <pthread.h>
#include <search.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "loader/load/slot_writer.h"
#include "loader/process/dl.h"
#include "loader/process/fork_guard.h"
#include "loader/process/linkmap.h"
#include "loader/track/address_map.h"
#include "loader/track/library_locks.h"

/* A lock that is held for moments, within the fork guard, and never while the system's loader is
 * asked.  It guards the slots of shared libraries and: */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *seen; /* dynamic sections of libraries that are done: a tree of tsearch(3) */
static unsigned long long unloads; /* of the process when these were done */

static int compare_addresses(const void *a, const void *b)
{
    return (a > b) - (a < b);
}

static void free_nothing(void *key)
{
    (void)key;
}

static void enter(void)
{
    exti__fork_guard_enter();
    pthread_mutex_lock(&lock);
}

static void leave(void)
{
    pthread_mutex_unlock(&lock);
    exti__fork_guard_leave();
}

/* Where one library was unloaded another may lie now.  Within the lock. */
static void forget_if_unloaded(unsigned long long now)
{
    if (now <= unloads)
        return;
    exti__tree_free(&seen, compare_addresses, free_nothing);
    unloads = now;
}

static bool is_seen(const struct exti_loaded *lib)
{
    const unsigned long long now = exti__unloads(); /* after the library got its handle */
    bool found;

    enter();
    forget_if_unloaded(now);
    found = tfind(lib->dynamic, &seen, compare_addresses) != NULL;
    leave();
    return found;
}

/* ---- a library and all that it needs ---- */

struct libraries {
    struct exti_loaded *libs; /* owned, with their handles but for the first's */
    size_t count, room;
};

static bool holds(const struct libraries *l, const struct exti_loaded *lib)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->libs[i].dynamic == lib->dynamic)
            return true;
    return false;
}

/* This library, which a Python package may need in a context too, means the process where it calls
 * getenv.  It may be a hidden part of another. */
static bool is_loader(const struct exti_loaded *lib)
{
    const struct exti_layout l = exti__loaded_layout(lib);
    const uintptr_t own = (uintptr_t)is_loader;

    return (own >= l.lo && own < l.hi) || exti__loaded_defines(lib, "exti_ctx_open");
}

/* Whether there is something to be done.  The C library is what the others ask. */
static bool concerns(const struct libraries *l, const struct exti_loaded *lib)
{
    return !holds(l, lib) && !is_seen(lib) && !exti__address_map_ctx(lib->inside) &&
           !exti__loaded_defines(lib, "getenv") && !is_loader(lib);
}

static int add(struct libraries *l, void *handle, bool *added, struct exti_error *err)
{
    struct exti_loaded lib, *libs;
    int rc = exti__loaded_from_handle(handle, &lib, err);

    *added = false;
    if (rc || !concerns(l, &lib))
        return rc;
    libs = exti__array_room(l->libs, l->count, &l->room, sizeof *libs);
    if (!libs)
        return exti__fail_nomem(err);
    l->libs = libs;
    l->libs[l->count++] = lib;
    *added = true;
    return 0;
}

static int add_needed(struct libraries *l, size_t of, struct exti_error *err)
{
    const char *name;
    int rc = 0;

    for (size_t i = 0; !rc && (name = exti__loaded_needed(&l->libs[of], i)); i++) {
        void *handle = exti__dl_find(name);
        bool added = false;

        if (handle)
            rc = add(l, handle, &added, err);
        if (handle && !added)
            exti__dl_close(handle, NULL);
    }
    return rc;
}

static void free_libraries(struct libraries *l)
{
    for (size_t i = 1; i < l->count; i++)
        exti__dl_close(l->libs[i].handle, NULL);
    exti__free(l->libs);
}

/* ---- their references ---- */

struct redirection {
    struct exti_ctx *ctx;
    struct exti_slot_writer writer;
    bool allocator; /* malloc may be called while others wait; allocators look after forks */
};

static bool is_of_environment(const char *name)
{
    static const char *const names[] = {"getenv",   "secure_getenv", "__secure_getenv", "setenv",
                                        "unsetenv", "putenv",        "clearenv"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* NULL: it stays as it is. */
static void *find_target(const struct redirection *r, const char *name)
{
    if (is_of_environment(name))
        return r->ctx->replacement(r->ctx, name);
    return r->allocator ? NULL : exti__library_lock_call(name);
}

/* A variable that once held the address may hold another by now. */
static int redirect(void *user, const struct exti_reference *ref)
{
    struct redirection *r = user;
    void *to;

    if (ref->defined_here || ref->kind != EXTI_REF_ADDRESS || ref->addend || ref->in_data)
        return 0;
    to = find_target(r, ref->name);
    if (!to || exti__slot_value(ref) == (uintptr_t)to)
        return 0;
    return !exti__slot_write(&r->writer, ref->slot, (uintptr_t)to);
}

static int redirect_library(struct exti_ctx *ctx, const struct exti_loaded *lib,
                            struct exti_error *err)
{
    struct exti_module m = {
        .ctx = ctx, .copy = lib->path, .lib = *lib, .layout = exti__loaded_layout(lib)};
    struct redirection r = {
        .ctx = ctx, .writer.m = &m, .allocator = exti__loaded_defines(lib, "malloc")};
    int rc;

    enter();
    exti__loaded_references(lib, NULL, redirect, &r, NULL);
    rc = exti__slots_end(&r.writer, "cannot lead its calls to those for contexts", err);
    leave();
    return rc;
}

static int remember(const struct libraries *l, struct exti_error *err)
{
    const unsigned long long now = exti__unloads();
    int rc = 0;

    enter();
    forget_if_unloaded(now);
    for (size_t i = 0; i < l->count && !rc; i++)
        if (!tsearch(l->libs[i].dynamic, &seen, compare_addresses))
            rc = exti__fail_nomem(err);
    leave();
    return rc;
}

/* Shared libraries call functions of this one from now on, whoever closes it. */
static void stay_loaded(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, exti__stay_loaded);
}

/* A library that only contexts without one have used is looked through again for those with one. */
static bool has_environment(struct exti_ctx *ctx)
{
    return ctx->replacement(ctx, "environ") != NULL;
}

int exti__share_calls(struct exti_ctx *ctx, void *handle, struct exti_error *err)
{
    struct libraries l = {0};
    bool added;
    int rc;

    if (!ctx->replacement)
        return 0;
    rc = add(&l, handle, &added, err);
    for (size_t i = 0; i < l.count && !rc; i++)
        rc = add_needed(&l, i, err);
    if (l.count)
        stay_loaded();
    for (size_t i = 0; i < l.count && !rc; i++)
        rc = redirect_library(ctx, &l.libs[i], err);
    if (l.count && !rc && has_environment(ctx))
        rc = remember(&l, err);
    free_libraries(&l);
    return rc;
}
