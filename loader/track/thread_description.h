/* What is told of a thread that keeps a context mapped.  ELF systems. */
#ifndef LOADER_TRACK_THREAD_DESCRIPTION_H
#define LOADER_TRACK_THREAD_DESCRIPTION_H

#include <stdint.h>
#include <sys/types.h>

#include <extisolate.h>

struct exti_ctx;

/* Fills *finding: the thread, which began at `start`, is still running.  `start` is 0 for a thread
 * of the program that is in the context. */
void exti__thread_describe(const struct exti_ctx *ctx, pid_t tid, uintptr_t start,
                           struct exti_error *finding);

#endif
