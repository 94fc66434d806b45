/* Exceptions that are raised in a running job from outside. */
#ifndef RUNTIME_EMBED_INTERRUPT_H
#define RUNTIME_EMBED_INTERRUPT_H

#include "runtime/embed/job.h"

/* Between these two the worker, which is inside, can be interrupted.  After the second one it is
 * as if nothing had been sent that has not arrived.  `ended`: the context has, and it has no GIL
 * any more. */
void extipy__interrupt_begin(struct extipy_job *job);
void extipy__interrupt_end(struct extipy_job *job, int ended);

/* Whether the job that runs is to be interrupted; the context's lock is held. */
int extipy__interrupt_due(const struct extipy_ctx *c);
/* Interrupts it, on the context's own thread, which has no GIL; the context's lock is held, and let
 * go of meanwhile.  Consumes and returns that thread's state. */
void *extipy__interrupt_send(struct extipy_ctx *c, void *state);

#endif
