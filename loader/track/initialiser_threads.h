/* Threads that copies have started before their calls could be re-pointed.  ELF systems. */
#ifndef LOADER_TRACK_INITIALISER_THREADS_H
#define LOADER_TRACK_INITIALISER_THREADS_H

#include <stddef.h>

#include <extisolate.h>

struct exti_ctx;

/* Describes the context's living ones to `report`, whose result does not matter, and counts them.
 * If it cannot be told whether there are any, describes that, and counts one. */
size_t exti__initialiser_threads_report(const struct exti_ctx *ctx, exti_report_fn report,
                                        void *user);

#endif
