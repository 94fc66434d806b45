/* Calls that use a context, by its copies and by the program: the context is not freed under them.
 * Any thread. */
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
    bool refused;            /* it has not begun, as another thread closes the context */
};

/* Begins a call of the program.  EXTI_E_BUSY while another thread closes the context. */
int exti__call_begin(struct exti_call *c, struct exti_ctx *ctx, struct exti_error *err);

/* Begins a call of the copy that `address` lies in, *caller.  False if there is none, or, and then
 * c->refused is set, while another thread closes its context. */
bool exti__call_begin_at(struct exti_call *c, uintptr_t address, struct exti_module *caller);

/* Likewise, but also while the context is closed, which then waits: for a short call that notes
 * what must be undone, as whoever closes has to know it. */
bool exti__call_begin_note(struct exti_call *c, uintptr_t address, struct exti_module *caller);

void exti__call_end(struct exti_call *c);

/* Lets no other thread begin a call, and waits until those in flight have ended; or fails with
 * EXTI_E_BUSY if there are any and `wait` is false, or if the calling thread is in one itself. */
int exti__calls_stop(struct exti_ctx *ctx, bool wait, struct exti_error *err);

/* To be called before the context is freed, when its modules have left the address map: waits until
 * no call takes note any more. */
void exti__calls_forget(struct exti_ctx *ctx);

#endif
