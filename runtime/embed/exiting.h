/* The end of a context by exit, _exit or the like of its own code. */
#ifndef RUNTIME_EMBED_EXITING_H
#define RUNTIME_EMBED_EXITING_H

#include "runtime/embed/context.h"

/* The hooks; `user` is the context. */
int extipy__can_exit(void *user, struct exti_ctx *loader, uint32_t where);
void extipy__exit(void *user, struct exti_ctx *loader, int status);
void extipy__tell_abort(void *user, struct exti_ctx *loader);

/* Calls `run` on a thread that has entered, or that is the context's own.  *ended: it has not
 * returned, as the context has ended; then the thread has no GIL any more. */
struct pyobj *extipy__exiting_run(struct extipy_ctx *c,
                                  struct pyobj *(*run)(struct extipy_ctx *c, const void *what),
                                  const void *what, int *ended);

/* Whether the context's own thread has to see to those inside; the context's lock is held. */
int extipy__exiting_due(const struct extipy_ctx *c);
/* Raises SystemExit in them, as extipy__jobs_tend. */
void *extipy__exiting_tend(struct extipy_ctx *c, void *state);

/* On the context's own thread, when all who were inside have left: takes the GIL for ever, so that
 * threads of Python stop where they want it.  One may have it for ever, and then this waits. */
void *extipy__exiting_keep_gil(struct extipy_ctx *c, void *state);
/* Waits two seconds at most until it has the GIL, and returns whether it has; the context's lock is
 * held, and let go of meanwhile. */
int extipy__exiting_await_gil(struct extipy_ctx *c);

/* Keeps what the context's threads may use for ever; after it is closed. */
void extipy__exited_keep(struct extipy_ctx *c);

#endif
