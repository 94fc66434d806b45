/* The functions for environment variables as copies call them, on their context's own.  ELF
 * systems. */
#ifndef LOADER_INTERPOSE_ENVIRONMENT_CALLS_H
#define LOADER_INTERPOSE_ENVIRONMENT_CALLS_H

#include "loader/track/context.h"

#if !defined(__APPLE__) && !defined(_WIN32)

/* The function or variable for `symbol`, or NULL. */
void *exti__environment_call(const struct exti_ctx *ctx, const char *symbol);

#else

static inline void *exti__environment_call(const struct exti_ctx *ctx, const char *symbol)
{
    (void)ctx, (void)symbol;
    return NULL;
}

#endif
#endif
