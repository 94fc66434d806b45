/* What stays mapped of a closed context.  ELF systems. */
#ifndef LOADER_TRACK_STILL_MAPPED_H
#define LOADER_TRACK_STILL_MAPPED_H

#include <stddef.h>

#include <extisolate.h>

struct exti_ctx;

#if !defined(__APPLE__) && !defined(_WIN32)

/* Describes each file in the context's directory that is mapped, and what holds it there, to `report`,
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
