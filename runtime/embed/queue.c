#include "runtime/embed/queue.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/fail.h"
#include "runtime/system.h"

struct extipy_queue {
    atomic_size_t refs; /* of the program, and of jobs that have not ended */
    pthread_mutex_t lock;
    struct extipy_job_list jobs; /* each a reference */
    int fd[2];                   /* a message is on its way as long as there are jobs */
    int freed;
};

int extipy_queue_new(struct extipy_queue **out, struct exti_error *err)
{
    struct extipy_queue *q;

    if (!out)
        return pyrt_fail(err, EXTI_E_ARG, "out is NULL");
    q = calloc(1, sizeof *q);
    if (!q)
        return pyrt_fail(err, EXTI_E_NOMEM, "out of memory");
    if (pyrt_event_open(q->fd) != 0) {
        free(q);
        return pyrt_fail_os(err, errno, "", "cannot open a file descriptor for the queue");
    }
    atomic_init(&q->refs, 1);
    pthread_mutex_init(&q->lock, NULL);
    *out = q;
    return 0;
}

struct extipy_queue *extipy__queue_ref(struct extipy_queue *q)
{
    atomic_fetch_add(&q->refs, 1);
    return q;
}

void extipy__queue_unref(struct extipy_queue *q)
{
    if (!q || atomic_fetch_sub(&q->refs, 1) != 1)
        return;
    pthread_mutex_destroy(&q->lock);
    free(q);
}

int extipy_queue_fd(const struct extipy_queue *q)
{
    return q->fd[0];
}

/* The other side takes nothing in pieces, and never more than one message is on its way. */
static void say_ready(const struct extipy_queue *q)
{
    const uint64_t one = 1;

    while (write(q->fd[1], &one, sizeof one) < 0 && errno == EINTR)
        continue;
}

static void take_back(const struct extipy_queue *q)
{
    uint64_t message;

    while (read(q->fd[0], &message, sizeof message) < 0 && errno == EINTR)
        continue;
}

void extipy__queue_push(struct extipy_queue *q, struct extipy_job *job)
{
    int freed;

    pthread_mutex_lock(&q->lock);
    freed = q->freed;
    if (!freed) {
        if (!q->jobs.first)
            say_ready(q);
        extipy__job_append(&q->jobs, job);
    }
    pthread_mutex_unlock(&q->lock);
    if (freed)
        extipy_job_release(job);
}

struct extipy_job *extipy_queue_next(struct extipy_queue *q)
{
    struct extipy_job *job;

    pthread_mutex_lock(&q->lock);
    job = q->jobs.first;
    if (job) {
        extipy__job_remove(&q->jobs, EXTIPY_BY_TURN, job);
        if (!q->jobs.first)
            take_back(q);
    }
    pthread_mutex_unlock(&q->lock);
    return job;
}

void extipy_queue_free(struct extipy_queue *q)
{
    struct extipy_job *job, *next;

    if (!q)
        return;
    pthread_mutex_lock(&q->lock);
    q->freed = 1;
    job = q->jobs.first;
    pthread_mutex_unlock(&q->lock);
    for (; job; job = next) {
        next = job->in[EXTIPY_BY_TURN].next;
        extipy_job_release(job);
    }
    close(q->fd[0]);
    if (q->fd[1] != q->fd[0])
        close(q->fd[1]);
    extipy__queue_unref(q);
}
