/* The functions for the current locale as copies call them, on their context's.  ELF systems. */
#ifndef LOADER_INTERPOSE_LOCALE_CALLS_H
#define LOADER_INTERPOSE_LOCALE_CALLS_H

#include "loader/track/context.h"

#if !defined(__APPLE__) && !defined(_WIN32)

/* The function for `symbol`, or NULL. */
void *exti__locale_call(const struct exti_ctx *ctx, const char *symbol);

#else

static inline void *exti__locale_call(const struct exti_ctx *ctx, const char *symbol)
{
    (void)ctx, (void)symbol;
    return NULL;
}

#endif
#endif
