/* The functions for the directory and the umask as copies call them: what they change is the
 * context's, on whichever of its threads.  ELF systems. */
#ifndef LOADER_INTERPOSE_DIRECTORY_CALLS_H
#define LOADER_INTERPOSE_DIRECTORY_CALLS_H

#include "loader/track/context.h"

#if !defined(__APPLE__) && !defined(_WIN32)

/* The function for `symbol`, or NULL. */
void *exti__directory_call(const struct exti_ctx *ctx, const char *symbol);

#else

static inline void *exti__directory_call(const struct exti_ctx *ctx, const char *symbol)
{
    (void)ctx, (void)symbol;
    return NULL;
}

#endif
#endif
