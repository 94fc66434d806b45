/* The functions that end a program, and those that register what runs then, as copies call them:
 * they are the context's.  ELF systems. */
#ifndef LOADER_INTERPOSE_END_CALLS_H
#define LOADER_INTERPOSE_END_CALLS_H

#include "loader/track/context.h"

#if !defined(__APPLE__) && !defined(_WIN32)

/* The function for `symbol`, or NULL. */
void *exti__end_call(const struct exti_ctx *ctx, const char *symbol);

#else

static inline void *exti__end_call(const struct exti_ctx *ctx, const char *symbol)
{
    (void)ctx, (void)symbol;
    return NULL;
}

#endif
#endif
