/* Libraries that contexts share have the environment variables of the context that calls them, and
 * forks wait for who holds their locks (loader/track/library_locks.h). */
#ifndef LOADER_LOAD_SHARED_CALLS_H
#define LOADER_LOAD_SHARED_CALLS_H

#include "loader/track/context.h"

#if !defined(__APPLE__) && !defined(_WIN32)

/* Binds references of the library that `handle` is of, and of all that it needs: those to getenv
 * and the like, if the context has an environment of its own, to functions that ask for the context
 * of the calling thread (a thread in none has the process's variables, as before); those to
 * pthread_mutex_lock and the like to functions that count.  Nothing happens to copies and to the C
 * library.  No lock of the library is held: asks the system's loader. */
int exti__share_calls(struct exti_ctx *ctx, void *handle, struct exti_error *err);

#else

static inline int exti__share_calls(struct exti_ctx *ctx, void *handle, struct exti_error *err)
{
    (void)ctx, (void)handle, (void)err;
    return 0;
}

#endif
#endif
