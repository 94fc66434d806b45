/* Planned copies that wait to be written, and the threads that write them. */
#ifndef LOADER_STORE_WRITE_QUEUE_H
#define LOADER_STORE_WRITE_QUEUE_H

#include <pthread.h>
#include <stdbool.h>

#include "loader/store/store_make.h"

/* One copy to be written.  Its entry's strings may be the manifest's. */
struct exti_write_job {
    struct exti_making making;
    struct exti_write_job *next; /* in the queue */
    bool done;                   /* guarded by the queue's lock, as are its results: */
    int rc;
    struct exti_error err;
};

struct exti_write_queue {
    const struct exti_store *store;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t more, done;
    struct exti_write_job *head; /* the largest file first */
    size_t queued;
    bool closing;
    pthread_t *helpers; /* owned */
    size_t helper_count, helper_max;
};

/* `threads`, the caller's included; 0: one per processor.  They start as jobs come.  On failure
 * the queue is to be freed all the same. */
int exti__write_queue_init(struct exti_write_queue *q, const struct exti_store *s, size_t threads,
                           struct exti_error *err);

/* Adds a job, which stays the caller's.  Writes one itself when too many wait, or when there is
 * no helper. */
void exti__write_queue_add(struct exti_write_queue *q, struct exti_write_job *j);

/* Writes one job on the calling thread; false when none waits. */
bool exti__write_queue_write_one(struct exti_write_queue *q);

bool exti__write_queue_is_done(struct exti_write_queue *q, const struct exti_write_job *j);
void exti__write_queue_wait(struct exti_write_queue *q, const struct exti_write_job *j);

/* Drops the jobs that nobody has begun: they are done, with EXTI_E_BUSY. */
void exti__write_queue_abandon(struct exti_write_queue *q);

/* Ends the helpers, once the queue is empty. */
void exti__write_queue_join(struct exti_write_queue *q);

void exti__write_queue_free(struct exti_write_queue *q);

#endif
