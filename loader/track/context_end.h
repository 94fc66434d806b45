/* The end of one context alone, by exit and the like of its copies.  ELF systems.  Any thread; all
 * but exti__context_exit are async-signal-safe. */
#ifndef LOADER_TRACK_CONTEXT_END_H
#define LOADER_TRACK_CONTEXT_END_H

#include "loader/track/calls.h"

#if !defined(__APPLE__) && !defined(_WIN32)

/* Begins a short call of the context in which the call that returns to `call` is made: the copy's
 * or, where a library that is no copy makes it for a copy, as libffi does, the one that the thread
 * has entered.  False: none, or this is a process that was forked since that was opened. */
bool exti__context_call_begin(struct exti_call *c, uintptr_t call);

/* That context, if it is to end alone by such a call, or NULL.  The context is not freed from then
 * on, unless it goes on. */
struct exti_ctx *exti__context_ending(uintptr_t call);
void exti__context_goes_on(struct exti_ctx *ctx);

/* Begins a short call of a context that is ending, which is not closed meanwhile.  If it is closed
 * already, or is being closed, the thread stops for ever. */
void exti__context_hold(struct exti_call *c, struct exti_ctx *ctx);

/* Runs the context's exit handlers, as exit(3), and then ends it. */
_Noreturn void exti__context_exit(struct exti_ctx *ctx, int status);

/* Ends it at once. */
_Noreturn void exti__context_cut_off(struct exti_ctx *ctx, int status);

/* A module of a context that has ended stays mapped, and leaves the address map: threads that are
 * in it end nothing any more. */
void exti__context_leave_behind(const struct exti_module *m);

/* Keeps what threads that have ended it may use for ever, instead of freeing it. */
void exti__context_keep(struct exti_ctx *ctx);

#else

static inline void exti__context_leave_behind(const struct exti_module *m)
{
    (void)m;
}
static inline void exti__context_keep(struct exti_ctx *ctx)
{
    (void)ctx;
}

#endif
#endif
