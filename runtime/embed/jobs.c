/* A job that runs is ended by the worker, and one that does not by the context's own thread, which
 * waits for deadlines too.  Both tell who wants to know of it, and hold nothing meanwhile. */
#include "runtime/embed/jobs.h"

#include "runtime/embed/call.h"
#include "runtime/embed/exiting.h"
#include "runtime/embed/interrupt.h"
#include "runtime/embed/options.h"
#include "runtime/embed/queue.h"
#include "runtime/fail.h"
#include "runtime/host.h"
#include "runtime/system.h"

/* ---- the end of a job ---- */

/* Those who wait are woken without the lock, which they would find taken and sleep again.  Consumes
 * the library's reference. */
static void wake_waiting(struct extipy_job *job)
{
    pthread_cond_broadcast(&job->settling);
    extipy_job_release(job);
}

/* Likewise. */
static void settle_job(struct extipy_job *job)
{
    if (job->done)
        job->done(job, job->user);
    if (job->queue)
        extipy__queue_push(job->queue, extipy_job_keep(job));
    extipy__queue_unref(job->queue);
    pthread_mutex_lock(&job->ctx->lock);
    job->settled = 1;
    pthread_mutex_unlock(&job->ctx->lock);
    wake_waiting(job);
}

/* The lock is held, as for what follows. */
static void drop_deadline(struct extipy_job *job)
{
    if (job->deadline != PYRT_NEVER)
        extipy__job_remove(&job->ctx->jobs.timed, EXTIPY_BY_DEADLINE, job);
    job->deadline = PYRT_NEVER;
}

static void end_unrun(struct extipy_job *job, int code, const char *why)
{
    struct extipy_ctx *c = job->ctx;
    struct exti_error err;

    drop_deadline(job);
    extipy__job_remove(&c->jobs.queued, EXTIPY_BY_TURN, job);
    extipy__job_append(&c->jobs.unrun, job);
    pyrt_fail(&err, code, "%s", why);
    extipy__job_fail(job, &err);
    job->state = EXTIPY_JOB_ENDED;
    pthread_cond_broadcast(&c->changed);
}

static int has_expired(const struct extipy_job *job)
{
    return job && job->deadline <= pyrt_clock();
}

static void expire_jobs(struct extipy_ctx *c)
{
    struct extipy_job *job;

    while (has_expired(job = c->jobs.timed.first))
        if (job->state == EXTIPY_JOB_QUEUED) {
            end_unrun(job, EXTIPY_E_TIMEOUT, "the job's time was over before it began");
        } else {
            drop_deadline(job);
            job->interrupt = EXTIPY_BY_CLOCK;
        }
}

/* The worker may never come back from the job that it is in, whose end is told all the same. */
static void abandon_job(struct extipy_ctx *c)
{
    struct extipy_job *job = c->jobs.running;
    struct exti_error err;

    drop_deadline(job);
    c->jobs.running = NULL;
    c->jobs.abandoned = job->abandoned = 1;
    c->stuck = 1;
    extipy__exited(c, &err);
    extipy__job_fail(job, &err);
    job->state = EXTIPY_JOB_ENDED;
    extipy__job_append(&c->jobs.unrun, job);
}

/* Its own code has ended the context: so all jobs end. */
static void end_all(struct extipy_ctx *c)
{
    struct exti_error err;

    extipy__exited(c, &err);
    while (c->jobs.queued.first)
        end_unrun(c->jobs.queued.first, EXTIPY_E_EXITED, err.message);
    if (c->jobs.running)
        abandon_job(c);
}

static int are_to_end(const struct extipy_ctx *c)
{
    return extipy__has_exited(c) && (c->jobs.queued.first || c->jobs.running);
}

/* ---- the worker ---- */

struct outcome {
    int code; /* below 0: with an error */
    struct extipy_values *result;
    struct extipy_exception *raised;
};

static void make_call(struct extipy_ctx *c, struct extipy_job *job, struct outcome *out,
                      struct exti_error *err)
{
    struct pyobj *object;
    int ended;

    out->code = extipy_enter(c, err);
    if (out->code < 0)
        return;
    extipy__interrupt_begin(job);
    object = extipy__call_inside(c, &job->call, &ended);
    extipy__interrupt_end(job, ended);
    out->code = ended
                    ? extipy__exited(c, err)
                    : extipy__call_keep(c, job->call.stay, object, &out->result, &out->raised, err);
    extipy_leave(c, NULL);
}

/* Returns 0 if the job was abandoned.  The lock is held. */
static int end_job(struct extipy_job *job, const struct outcome *out, const struct exti_error *err)
{
    if (job->abandoned)
        return 0;
    drop_deadline(job);
    if (out->code < 0)
        extipy__job_fail(job, err);
    job->result = out->result;
    job->raised = out->raised;
    job->state = EXTIPY_JOB_ENDED;
    job->settled = !job->done && !job->queue;
    return 1;
}

static void run_job(struct extipy_ctx *c, struct extipy_job *job)
{
    struct outcome out = {0};
    struct exti_error err;
    int ended, settled;

    extipy_job_keep(job);
    make_call(c, job, &out, &err);
    extipy__job_drop_call(job);
    pthread_mutex_lock(&c->lock);
    ended = end_job(job, &out, &err);
    settled = job->settled;
    pthread_mutex_unlock(&c->lock);
    if (ended && settled) {
        wake_waiting(job);
    } else if (ended) {
        settle_job(job);
    } else {
        extipy_values_free(out.result);
        extipy_exception_free(out.raised);
    }
    extipy_job_release(job);
}

/* NULL: the context is being closed, and there are none any more.  The context's own thread may be
 * late, so this looks at deadlines as well. */
static struct extipy_job *await_job(struct extipy_ctx *c)
{
    struct extipy_job *job;

    pthread_mutex_lock(&c->lock);
    expire_jobs(c);
    while (!c->jobs.queued.first && c->phase == EXTIPY_OPEN && !extipy__has_exited(c)) {
        pthread_cond_wait(&c->jobs.work, &c->lock);
        expire_jobs(c);
    }
    job = extipy__has_exited(c) ? NULL : c->jobs.queued.first;
    if (job) {
        extipy__job_remove(&c->jobs.queued, EXTIPY_BY_TURN, job);
        job->state = EXTIPY_JOB_BEGUN;
    }
    pthread_mutex_unlock(&c->lock);
    return job;
}

static void *work(void *arg)
{
    struct extipy_ctx *c = arg;
    struct extipy_job *job;

    pyrt_name_thread("context's jobs");
    if (c->has_directory)
        exti_ctx_own_thread(c->loader, 1, NULL);
    while ((job = await_job(c)))
        run_job(c, job);
    pthread_mutex_lock(&c->lock);
    c->jobs.over = 1;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    extipy__context_unref(c);
    return NULL;
}

/* On a thread of the context's, whose directory it gets.  The lock is held. */
static int start_worker(struct extipy_ctx *c, struct exti_error *err)
{
    const int rc = pyrt_thread_start(&c->jobs.worker, work, extipy__context_ref(c), err);

    if (rc < 0)
        extipy__context_unref(c);
    c->jobs.started = rc == 0;
    c->jobs.wanted = 0;
    return rc;
}

void extipy__jobs_end(struct extipy_ctx *c)
{
    int started, abandoned;

    pthread_mutex_lock(&c->lock);
    started = c->jobs.started;
    c->jobs.wanted = 0;
    while (c->jobs.queued.first)
        end_unrun(c->jobs.queued.first, EXTIPY_E_CLOSED, "the context is closed");
    pthread_cond_signal(&c->jobs.work);
    while (started && !c->jobs.over && !c->jobs.abandoned)
        if (are_to_end(c))
            end_all(c);
        else
            pthread_cond_wait(&c->changed, &c->lock);
    abandoned = c->jobs.abandoned;
    pthread_mutex_unlock(&c->lock);
    if (!started)
        return;
    if (abandoned)
        pthread_detach(c->jobs.worker);
    else
        pthread_join(c->jobs.worker, NULL);
    pthread_mutex_lock(&c->lock);
    c->jobs.started = 0;
    pthread_mutex_unlock(&c->lock);
}

/* ---- the context's own thread ---- */

int extipy__jobs_due(const struct extipy_ctx *c)
{
    return c->jobs.wanted || c->jobs.unrun.first || are_to_end(c) || extipy__exiting_due(c) ||
           extipy__interrupt_due(c) || has_expired(c->jobs.timed.first);
}

uint64_t extipy__jobs_next(const struct extipy_ctx *c)
{
    return c->jobs.timed.first ? c->jobs.timed.first->deadline : PYRT_NEVER;
}

static void start_wanted_worker(struct extipy_ctx *c)
{
    struct exti_error err;
    const int rc = start_worker(c, &err);
    struct extipy_job *job;

    while (rc < 0 && (job = c->jobs.queued.first)) {
        end_unrun(job, rc, err.message);
        if (job->err)
            *job->err = err;
    }
}

static void settle_unrun(struct extipy_ctx *c)
{
    struct extipy_job *job = c->jobs.unrun.first;

    extipy__job_remove(&c->jobs.unrun, EXTIPY_BY_TURN, job);
    pthread_mutex_unlock(&c->lock);
    if (!job->abandoned)
        extipy__job_drop_call(job);
    settle_job(job);
    pthread_mutex_lock(&c->lock);
}

void extipy__jobs_settle(struct extipy_ctx *c)
{
    if (are_to_end(c))
        end_all(c);
    while (c->jobs.unrun.first)
        settle_unrun(c);
}

/* Who is told comes before who is interrupted, since that waits for the GIL. */
void *extipy__jobs_tend(struct extipy_ctx *c, void *state)
{
    if (c->jobs.wanted)
        start_wanted_worker(c);
    expire_jobs(c);
    if (are_to_end(c))
        end_all(c);
    if (c->jobs.unrun.first) {
        settle_unrun(c);
    } else if (extipy__exiting_due(c)) {
        state = extipy__exiting_tend(c, state);
    } else if (extipy__interrupt_due(c)) {
        state = extipy__interrupt_send(c, state);
    }
    return state;
}

int extipy__jobs_telling(struct extipy_ctx *c)
{
    int telling;

    pthread_mutex_lock(&c->lock);
    telling = extipy__context_works(c) ? c->jobs.running == NULL
                                       : pthread_equal(c->keeper, pthread_self());
    pthread_mutex_unlock(&c->lock);
    return telling;
}

/* ---- the public calls ---- */

/* The lock is held. */
static int add_job(struct extipy_ctx *c, struct extipy_job *job, struct exti_error *err)
{
    int rc = 0;

    if (extipy__has_exited(c))
        return extipy__exited(c, err);
    if (c->phase != EXTIPY_OPEN)
        return pyrt_fail(err, EXTIPY_E_CLOSED, "the context is closed");
    if (!c->jobs.started && pthread_equal(c->keeper, pthread_self()))
        rc = start_worker(c, err);
    if (rc < 0)
        return rc;
    if (!c->jobs.started) {
        c->jobs.wanted = 1;
        pthread_cond_broadcast(&c->changed);
    }
    extipy__job_append(&c->jobs.queued, job);
    if (job->deadline != PYRT_NEVER)
        extipy__job_insert(&c->jobs.timed, job);
    if (c->jobs.timed.first == job)
        pthread_cond_broadcast(&c->changed);
    if (job->queue)
        extipy__queue_ref(job->queue);
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
    job->deadline = opts.timeout ? pyrt_clock_after(opts.timeout) : PYRT_NEVER;
    extipy_job_keep(job); /* before it can end */
    pthread_mutex_lock(&c->lock);
    rc = add_job(c, job, err);
    pthread_mutex_unlock(&c->lock);
    if (rc == 0)
        pthread_cond_signal(&job->ctx->jobs.work); /* without the lock, which the worker takes */
    else
        extipy_job_release(job);
    if (rc == 0 && out)
        *out = job;
    else
        extipy_job_release(job);
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
