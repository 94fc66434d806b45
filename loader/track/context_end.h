/* The end of one context alone, by exit and the like of its copies.  ELF systems.  Any thread; all
 * but exti__context_exit are async-signal-safe. */
#ifndef LOADER_TRACK_CONTEXT_END_H
#define LOADER_TRACK_CONTEXT_END_H

#include "loader/track/context.h"

#if !defined(__APPLE__) && !defined(_WIN32)

/* Notes the process that opens the context. */
void exti__context_end_begin(struct exti_ctx *ctx);

/* The context in which the call that returns to `call` is made: the copy's or, where a library that
 * is no copy makes it for a copy, as libffi does, the thread's.  NULL: none, or this is a process
 * that was forked since that was opened. */
struct exti_ctx *exti__context_at(uintptr_t call);

/* The same, if that is to end alone by such a call. */
struct exti_ctx *exti__context_ending(uintptr_t call);

/* Runs the context's exit handlers, as exit(3), and then ends it. */
_Noreturn void exti__context_exit(struct exti_ctx *ctx, int status);

/* Ends it at once. */
_Noreturn void exti__context_cut_off(struct exti_ctx *ctx, int status);

#else

static inline void exti__context_end_begin(struct exti_ctx *ctx)
{
    (void)ctx;
}

#endif
#endif
