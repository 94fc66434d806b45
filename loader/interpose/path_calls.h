/* The functions that take a path as copies call them: what is the thread's own below /proc/self is
 * found there.  ELF systems. */
#ifndef LOADER_INTERPOSE_PATH_CALLS_H
#define LOADER_INTERPOSE_PATH_CALLS_H

#include "loader/track/context.h"

#if !defined(__APPLE__) && !defined(_WIN32)

/* The function for `symbol`, or NULL. */
void *exti__path_call(const struct exti_ctx *ctx, const char *symbol);

#else

static inline void *exti__path_call(const struct exti_ctx *ctx, const char *symbol)
{
    (void)ctx, (void)symbol;
    return NULL;
}

#endif
#endif
