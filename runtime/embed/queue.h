/* Where jobs go that have ended. */
#ifndef RUNTIME_EMBED_QUEUE_H
#define RUNTIME_EMBED_QUEUE_H

#include "runtime/embed/job.h"

struct extipy_queue *extipy__queue_ref(struct extipy_queue *q);
void extipy__queue_unref(struct extipy_queue *q); /* NULL ok */

/* Takes over a reference to the job. */
void extipy__queue_push(struct extipy_queue *q, struct extipy_job *job);

#endif
