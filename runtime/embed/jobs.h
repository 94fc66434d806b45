/* Runs the jobs of contexts. */
#ifndef RUNTIME_EMBED_JOBS_H
#define RUNTIME_EMBED_JOBS_H

#include "runtime/embed/context.h"

/* Whether the context's own thread has something to do with jobs; the context's lock is held. */
int extipy__jobs_due(const struct extipy_ctx *c);
/* Does it, on that thread, which has no GIL; the context's lock is held, and let go of meanwhile.
 * Consumes and returns that thread's state. */
void *extipy__jobs_tend(struct extipy_ctx *c, void *state);
/* When it will have something to do; the context's lock is held. */
uint64_t extipy__jobs_next(const struct extipy_ctx *c);

/* Ends the jobs of a context that its own code has ended, and tells, where the context's own thread
 * may be blocked; the context's lock is held, and let go of meanwhile. */
void extipy__jobs_settle(struct extipy_ctx *c);

/* Whether the calling thread is one that tells of jobs' ends, and in no call of a job. */
int extipy__jobs_telling(struct extipy_ctx *c);

/* Ends the worker of a context that is being closed, and so all jobs. */
void extipy__jobs_end(struct extipy_ctx *c);

#endif
