/* Which contexts the calling thread is in, and was in. */
#ifndef RUNTIME_EMBED_THREADS_H
#define RUNTIME_EMBED_THREADS_H

#include "runtime/embed/context.h"

/* Lets go of the GIL that the calling thread has, before it waits for something else.  *out is for
 * extipy__threads_resume, which takes it again; NULL: there was none. */
int extipy__threads_pause(struct extipy_attachment **out, struct exti_error *err);
void extipy__threads_resume(struct extipy_attachment *paused);

/* EXTIPY_E_PLACE if the calling thread is inside `c` or belongs to it. */
int extipy__threads_outside(struct extipy_ctx *c, struct exti_error *err);

/* Whether the context is the one that the thread has entered last, and it has not entered it before
 * others, nor was started by it. */
size_t extipy__threads_depth(void); /* how many times the thread has entered, any context */
int extipy__threads_entered_last(const struct extipy_ctx *c);
/* Returns what Python calls a thread that has a state there and was not returned before; 0: there
 * is none.  The context's lock is held. */
unsigned long extipy__threads_take_unasked(struct extipy_ctx *c);

/* Tells the loader of the threads that have not detached from the context, which is finalised. */
void extipy__threads_detach_all(struct extipy_ctx *c);

/* ---- a context whose main thread is the program's ---- */

/* Makes the calling thread, which has initialised, that thread; `state` is its state there. */
int extipy__threads_adopt(struct extipy_ctx *c, void *state, struct exti_error *err);
/* Takes it inside to finalise, though without the GIL, when the context lets nobody in any more.
 * EXTIPY_E_PLACE: it is another thread. */
int extipy__threads_begin_end(struct extipy_ctx *c, struct exti_error *err);
/* Takes it out again. */
void extipy__threads_end_end(struct extipy_ctx *c);
/* Forgets the state, which finalisation has ended. */
void extipy__threads_disown(struct extipy_ctx *c);

#endif
