/* A job that runs is ended by the worker, and one that does not by the context's own thread, which
 * is busy for moments only.  Both tell who wants to know of it, and hold nothing meanwhile. */
#include "runtime/embed/jobs.h"

#include "runtime/embed/call.h"
#include "runtime/embed/options.h"
#include "runtime/embed/queue.h"
#include "runtime/fail.h"
#include "runtime/host.h"
#include "runtime/system.h"

/* ---- the end of a job ---- */

/* Consumes the library's reference. */
static void settle_job(struct extipy_job *job)
{
    extipy__job_drop_call(job);
    if (job->done)
        job->done(job, job->user);
    if (job->queue)
        extipy__queue_push(job->queue, extipy_job_keep(job));
    extipy__queue_unref(job->queue);
    pthread_mutex_lock(&job->ctx->lock);
    job->settled = 1;
    pthread_cond_broadcast(&job->settling);
    pthread_mutex_unlock(&job->ctx->lock);
    extipy_job_release(job);
}

/* The lock is held. */
static void end_unrun(struct extipy_job *job, int code, const char *why)
{
    struct extipy_ctx *c = job->ctx;

    extipy__job_remove(&c->jobs.queued, job);
    extipy__job_append(&c->jobs.unrun, job);
    job->code = pyrt_fail(&job->err, code, "%s", why);
    job->state = EXTIPY_JOB_ENDED;
    pthread_cond_broadcast(&c->changed);
}

/* ---- the worker ---- */

static void run_job(struct extipy_ctx *c, struct extipy_job *job)
{
    int rc = extipy_enter(c, &job->err);

    if (rc == 0) {
        rc = extipy__call_keep(c, job->call.stay, extipy__call_inside(c, &job->call), &job->result,
                               &job->raised, &job->err);
        extipy_leave(c, NULL);
    }
    pthread_mutex_lock(&c->lock);
    job->code = rc;
    job->state = EXTIPY_JOB_ENDED;
    pthread_mutex_unlock(&c->lock);
    settle_job(job);
}

/* NULL: the context is being closed, and there are none any more. */
static struct extipy_job *await_job(struct extipy_ctx *c)
{
    struct extipy_job *job;

    pthread_mutex_lock(&c->lock);
    while (!c->jobs.queued.first && c->phase == EXTIPY_OPEN)
        pthread_cond_wait(&c->jobs.work, &c->lock);
    job = c->jobs.queued.first;
    if (job) {
        extipy__job_remove(&c->jobs.queued, job);
        job->state = EXTIPY_JOB_BEGUN;
    }
    pthread_mutex_unlock(&c->lock);
    return job;
}

/* When the context is being closed it gets no more jobs in, and each ends with that. */
static void *work(void *arg)
{
    struct extipy_ctx *c = arg;
    struct extipy_job *job;

    pyrt_name_thread("context's jobs");
    while ((job = await_job(c)))
        run_job(c, job);
    return NULL;
}

void extipy__jobs_end(struct extipy_ctx *c)
{
    int started;

    pthread_mutex_lock(&c->lock);
    started = c->jobs.started;
    pthread_cond_signal(&c->jobs.work);
    pthread_mutex_unlock(&c->lock);
    if (!started)
        return;
    pthread_join(c->jobs.worker, NULL);
    pthread_mutex_lock(&c->lock);
    c->jobs.started = 0;
    pthread_mutex_unlock(&c->lock);
}

/* ---- the context's own thread ---- */

int extipy__jobs_due(const struct extipy_ctx *c)
{
    return c->jobs.unrun.first != NULL;
}

void extipy__jobs_tend(struct extipy_ctx *c)
{
    struct extipy_job *job = c->jobs.unrun.first;

    extipy__job_remove(&c->jobs.unrun, job);
    pthread_mutex_unlock(&c->lock);
    settle_job(job);
    pthread_mutex_lock(&c->lock);
}

/* ---- the public calls ---- */

/* The lock is held. */
static int add_job(struct extipy_ctx *c, struct extipy_job *job, struct exti_error *err)
{
    int rc = 0;

    if (c->phase != EXTIPY_OPEN)
        return pyrt_fail(err, EXTIPY_E_CLOSED, "the context is closed");
    if (!c->jobs.started)
        rc = pyrt_thread_start(&c->jobs.worker, work, c, err);
    if (rc < 0)
        return rc;
    c->jobs.started = 1;
    extipy__job_append(&c->jobs.queued, job);
    if (job->queue)
        extipy__queue_ref(job->queue);
    pthread_cond_signal(&c->jobs.work);
    return 0;
}

int extipy_submit(struct extipy_job **out, struct extipy_ctx *c, const struct extipy_call *given,
                  const struct extipy_job_opts *how, struct exti_error *err)
{
    struct extipy_job_opts opts = {0};
    struct extipy_call call;
    struct extipy_job *job;
    int rc = extipy__call_read(&call, c, given, err);

    if (rc == 0 && how)
        rc = extipy__options_read(&opts, sizeof opts, how, err);
    if (rc == 0)
        rc = extipy__job_new(&job, c, &call, err);
    if (rc != 0)
        return rc;
    job->done = opts.done;
    job->user = opts.user;
    job->queue = opts.queue;
    if (out)
        extipy_job_keep(job); /* before it can end */
    pthread_mutex_lock(&c->lock);
    rc = add_job(c, job, err);
    pthread_mutex_unlock(&c->lock);
    if (rc < 0)
        extipy_job_release(job);
    if (rc < 0 && out)
        extipy_job_release(job);
    else if (out)
        *out = job;
    return rc;
}

int extipy_job_cancel(struct extipy_job *job, struct exti_error *err)
{
    int waits;

    if (!job)
        return pyrt_fail(err, EXTI_E_ARG, "the job is NULL");
    pthread_mutex_lock(&job->ctx->lock);
    waits = job->state == EXTIPY_JOB_QUEUED;
    if (waits)
        end_unrun(job, EXTIPY_E_CANCELLED, "the job was cancelled before it began");
    pthread_mutex_unlock(&job->ctx->lock);
    return waits ? 0 : pyrt_fail(err, EXTIPY_E_STATE, "the job has begun, or ended");
}
