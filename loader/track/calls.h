/* Calls that use a context, by its copies and by the program: the context is not freed under them,
 * and a fork does not tear it.  Any thread. */
#ifndef LOADER_TRACK_CALLS_H
#define LOADER_TRACK_CALLS_H

#include "loader/track/module.h"

/* Installs the fork handlers once; 0 or an errno value.  To be called after those of the address
 * map. */
int exti__calls_survive_forks(void);

/* A call in flight, on its thread's stack; it ends with exti__call_end, in reverse order. */
struct exti_call {
    struct exti_ctx *ctx;
    struct exti_call *outer; /* the thread's */
    bool resting;            /* it holds no lock of the context */
    const char *refused;     /* why it has not begun; NULL: the address is no copy's */
};

/* Begins a call of the program.  Waits while another thread of the context forks, unless the
 * calling thread is in a call already.  EXTI_E_BUSY while another thread closes it, and in a child
 * that was forked while another thread changed it. */
int exti__call_begin(struct exti_call *c, struct exti_ctx *ctx, struct exti_error *err);

/* Begins a call of the copy that `address` lies in, *caller.  False if there is none, or, and then
 * c->refused is set, where exti__call_begin would fail.  In a signal handler that has interrupted
 * one of these functions no copy is found. */
bool exti__call_begin_at(struct exti_call *c, uintptr_t address, struct exti_module *caller);

/* Likewise, but never waits, and also while the context is closed, which then waits: for a short
 * call that notes what must be undone, as whoever closes has to know it, or that only looks, maybe
 * in a signal handler. */
bool exti__call_begin_note(struct exti_call *c, uintptr_t address, struct exti_module *caller);

/* Likewise, in the context that *place says, which is NULL before exti__calls_forget.  False if it
 * is, or `place`. */
bool exti__call_begin_in(struct exti_call *c, struct exti_ctx *_Atomic *place);

void exti__call_end(struct exti_call *c);

/* The calling thread's innermost call, or NULL. */
struct exti_call *exti__call_innermost(void);

/* Around the parts of the thread's innermost call, if it is in one, in which it holds no lock and
 * leaves the context whole, but which may last: forks do not wait for them. */
void exti__call_rest(void);
void exti__call_resume(void);

/* Ends the thread's calls from the innermost to `c`, to which control will not return. */
void exti__calls_abandon(struct exti_call *c);

/* Before a fork on a thread of the context: waits some seconds at most until no other thread
 * changes the context, as the child could not use it, and has calls that begin from now on wait for
 * the fork, for as long at most. */
void exti__calls_begin_fork(const struct exti_ctx *ctx);

/* The thread's fork has happened, or failed; does nothing if it has not begun. */
void exti__calls_end_fork(void);

/* How long calls in flight are waited for. */
enum exti_patience {
    EXTI_PATIENCE_NONE,
    EXTI_PATIENCE_SOME, /* as long as a fork waits */
    EXTI_PATIENCE_ALL
};

/* Lets no other thread begin a call, and waits until those in flight have ended; or fails with
 * EXTI_E_BUSY if there are any when the patience is over or the calling thread is in a call itself,
 * for which theirs may wait; or if the context cannot be used. */
int exti__calls_stop(struct exti_ctx *ctx, enum exti_patience patience, struct exti_error *err);

/* Whether the former has been called, and has not failed.  *here: on this thread. */
bool exti__calls_are_stopped(struct exti_ctx *ctx, bool *here);

/* To be called before the context is freed, when its modules have left the address map: waits until
 * no call takes note any more. */
void exti__calls_forget(struct exti_ctx *ctx);

#endif
