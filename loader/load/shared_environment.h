/* Libraries that contexts share have the environment variables of the context that calls them. */
#ifndef LOADER_LOAD_SHARED_ENVIRONMENT_H
#define LOADER_LOAD_SHARED_ENVIRONMENT_H

#include "loader/track/context.h"

#if !defined(__APPLE__) && !defined(_WIN32)

/* Binds the references to getenv and the like, of the library that `handle` is of and of all that
 * it needs, to functions that ask for the context of the calling thread; a thread in none has the
 * process's variables, as before.  Nothing happens to copies, to the C library, and for a context
 * without an environment of its own.  No lock of the library is held: asks the system's loader. */
int exti__share_environment(struct exti_ctx *ctx, void *handle, struct exti_error *err);

#else

static inline int exti__share_environment(struct exti_ctx *ctx, void *handle,
                                          struct exti_error *err)
{
    (void)ctx, (void)handle, (void)err;
    return 0;
}

#endif
#endif
