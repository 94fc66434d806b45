/* Starting children and waiting for any of them: of copies they are their context's.  ELF
 * systems. */
#ifndef LOADER_INTERPOSE_CHILD_CALLS_H
#define LOADER_INTERPOSE_CHILD_CALLS_H

#include <stddef.h>

#include "loader/track/context.h"

#if !defined(__APPLE__) && !defined(_WIN32)

/* The function that a reference of the context's copies to `symbol` is bound to, or NULL. */
void *exti__child_call(const struct exti_ctx *ctx, const char *symbol);

#else

static inline void *exti__child_call(const struct exti_ctx *ctx, const char *symbol)
{
    (void)ctx, (void)symbol;
    return NULL;
}

#endif
#endif
