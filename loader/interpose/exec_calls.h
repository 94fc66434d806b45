/* The functions that run programs as copies call them: a program begins with the environment of the
 * context, is looked for along the context's PATH, and takes the place of the context's own if that
 * can end alone.  ELF systems. */
#ifndef LOADER_INTERPOSE_EXEC_CALLS_H
#define LOADER_INTERPOSE_EXEC_CALLS_H

#include "loader/track/context.h"

#if !defined(__APPLE__) && !defined(_WIN32)

/* The function for `symbol`, or NULL. */
void *exti__exec_call(const struct exti_ctx *ctx, const char *symbol);

#else

static inline void *exti__exec_call(const struct exti_ctx *ctx, const char *symbol)
{
    (void)ctx, (void)symbol;
    return NULL;
}

#endif
#endif
