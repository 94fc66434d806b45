/* The functions for local time as copies call them, in their context's time zone.  Of the GNU C
 * library. */
#ifndef LOADER_INTERPOSE_TIME_CALLS_H
#define LOADER_INTERPOSE_TIME_CALLS_H

#include "loader/track/context.h"

#if !defined(__APPLE__) && !defined(_WIN32)

/* The function or variable for `symbol`, or NULL. */
void *exti__time_call(const struct exti_ctx *ctx, const char *symbol);

#else

static inline void *exti__time_call(const struct exti_ctx *ctx, const char *symbol)
{
    (void)ctx, (void)symbol;
    return NULL;
}

#endif
#endif
