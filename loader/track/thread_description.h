/* What is told of a thread that keeps a context mapped.  ELF systems. */
#ifndef LOADER_TRACK_THREAD_DESCRIPTION_H
#define LOADER_TRACK_THREAD_DESCRIPTION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <extisolate.h>

struct exti_ctx;

/* Fills *finding: the thread, which began at `start`, is still running.  `start` is 0 for a thread
 * of the program that is in the context. */
void exti__thread_describe(const struct exti_ctx *ctx, pid_t tid, uintptr_t start,
                           struct exti_error *finding);

/* Whether the thread has begun to end in the kernel, and so runs none of its code any more: who
 * joins it may be woken before it has gone, and on a busy machine long before.  False where the
 * system does not tell. */
bool exti__thread_is_exiting(pid_t tid);

#endif
