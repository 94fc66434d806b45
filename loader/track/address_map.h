/* The process's table of modules by address.  Any thread; the table has a lock of its own, under
 * which nothing else is locked. */
#ifndef LOADER_TRACK_ADDRESS_MAP_H
#define LOADER_TRACK_ADDRESS_MAP_H

#include <signal.h>
#include <stdatomic.h>

#include "loader/track/module.h"

/* Installs the fork handlers.  To be called before any copy is loaded: a child's fork handlers run
 * in the order in which they were registered, and a copy's may look up addresses. */
int exti__address_map_survive_forks(struct exti_error *err);

int exti__address_map_add(struct exti_module *m, struct exti_error *err);

/* The module lingers from here on: call exti__lingering_sweep once it is closed. */
void exti__address_map_remove(struct exti_module *m);

/* Until the next call only the calling thread finds the modules of `list`, which have been removed:
 * for as long as the system's loader closes them.  Returns the thread's former list, to be put back
 * afterwards, as closing one module may close another. */
const struct exti_module *exti__address_map_unloading(const struct exti_module *list);

/* Finds the module at `address`: its ctx, handle, original, lib and layout.  By value, as a thread
 * that has loaded a file at the same time as another may be about to free its module.  What the
 * copy points at stays valid while the code at that address runs.  A signal handler may call it; if
 * that has interrupted its thread while it changed the map, there is no module. */
bool exti__address_map_find(uintptr_t address, struct exti_module *out);

/* The module that the calling thread has asked for last.  A signal handler may come at any moment,
 * and ask too.  So `size` is written last, and `ctx`, which is the answer, is read first: a handler
 * that writes in between leaves a range that the address is not in, or of the same module. */
struct exti_last_found {
    volatile sig_atomic_t writing;
    struct exti_ctx *volatile ctx;
    volatile unsigned long changes; /* of the table until then */
    volatile uintptr_t lo, size;
};
extern _Thread_local struct exti_last_found exti__last_found;
extern atomic_ulong exti__address_map_changes;
/* For exti__address_map_ctx: looks for it in the table. */
struct exti_ctx *exti__address_map_find_ctx(uintptr_t address);

/* The context of the module at `address`, or NULL, as exti__address_map_find tells; the same one is
 * told again in a nanosecond or two. */
static inline struct exti_ctx *exti__address_map_ctx(uintptr_t address)
{
    const struct exti_last_found *last = &exti__last_found;
    const unsigned long now =
        atomic_load_explicit(&exti__address_map_changes, memory_order_acquire);
    struct exti_ctx *ctx = last->ctx;

    if (last->changes == now && address - last->lo < last->size)
        return ctx;
    return exti__address_map_find_ctx(address);
}

/* Whether the calling thread is closing the module at the address. */
bool exti__address_map_is_unloading(uintptr_t address);

/* Finds the context's module that is a copy of `source`, by value too. */
bool exti__address_map_find_copy(const struct exti_ctx *ctx, const char *source,
                                 struct exti_module *out);

/* Writes the original of the loaded copy `copy` into `out`, of any context, closed ones included
 * while the copy is mapped.  If there is none the contents of `out` are unspecified. */
bool exti__address_map_original(const char *copy, char *out, size_t size);

/* Whether a module of another context has a copy of the same file name. */
bool exti__address_map_has_namesake(const struct exti_module *m);

/* Keeps the process's other contexts from loading this copy of an API library, and with it others
 * of its directory, until the context gives the claim back.  False if another context has it.
 * `api_copy` must stay valid, and be the same for each call of a context. */
bool exti__address_map_claim(struct exti_ctx *ctx, const char *api_copy);
void exti__address_map_unclaim(struct exti_ctx *ctx); /* no claim: ok */

#endif
