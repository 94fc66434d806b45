/* All threads that keep a context mapped. */
#ifndef LOADER_TRACK_LIVING_THREADS_H
#define LOADER_TRACK_LIVING_THREADS_H

#include <stddef.h>

#include <extisolate.h>

struct exti_ctx;

#if !defined(__APPLE__) && !defined(_WIN32)

/* Waits for those that are about to end, then describes those that live to `report`, whose result
 * does not matter, and counts them. */
size_t exti__living_threads_report(const struct exti_ctx *ctx, exti_report_fn report, void *user);

#else

static inline size_t exti__living_threads_report(const struct exti_ctx *ctx, exti_report_fn report,
                                                 void *user)
{
    (void)ctx, (void)report, (void)user;
    return 0;
}

#endif
#endif
