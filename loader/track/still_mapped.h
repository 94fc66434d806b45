/* What stays mapped of a closed context.  ELF systems. */
#ifndef LOADER_TRACK_STILL_MAPPED_H
#define LOADER_TRACK_STILL_MAPPED_H

#include <stddef.h>

#include <extisolate.h>

struct exti_ctx;

#if !defined(__APPLE__) && !defined(_WIN32)

/* Describes each mapped file of the context's directory, and what keeps it mapped, to `report`,
 * whose result does not matter, and counts them. */
size_t exti__still_mapped_report(const struct exti_ctx *ctx, exti_report_fn report, void *user);

#else

static inline size_t exti__still_mapped_report(const struct exti_ctx *ctx, exti_report_fn report,
                                               void *user)
{
    (void)ctx, (void)report, (void)user;
    return 0;
}

#endif
#endif
