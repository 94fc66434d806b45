/* The functions that make pipes and sockets, as copies call them. */
#ifndef LOADER_INTERPOSE_DESCRIPTOR_CALLS_H
#define LOADER_INTERPOSE_DESCRIPTOR_CALLS_H

#include "loader/track/context.h"

#if !defined(__APPLE__) && !defined(_WIN32)
/* The function that a reference of the context's copies to `symbol` is bound to, or NULL. */
void *exti__descriptor_call(const struct exti_ctx *ctx, const char *symbol);
#else
static inline void *exti__descriptor_call(const struct exti_ctx *ctx, const char *symbol)
{
    (void)ctx;
    (void)symbol;
    return NULL;
}
#endif

#endif
