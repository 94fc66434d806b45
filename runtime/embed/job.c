#include "runtime/embed/job.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/embed/threads.h"
#include "runtime/embed/values.h"
#include "runtime/fail.h"
#include "runtime/system.h"

/* ---- its life ---- */

int extipy__job_new(struct extipy_job **out, struct extipy_ctx *c, const struct extipy_call *call,
                    struct exti_error *err)
{
    struct extipy_job *job = malloc(sizeof *job);
    char *function = call->function ? strdup(call->function) : NULL;

    if (job)
        *job = (struct extipy_job){.refs = 1, .ctx = c, .call = *call};
    if (!job || (call->function && !function) || pyrt_cond_init(&job->settling) != 0) {
        free(function);
        free(job);
        return pyrt_fail(err, EXTI_E_NOMEM, "out of memory");
    }
    extipy__context_ref(c);
    job->call.function = function;
    extipy_object_keep(call->callee);
    extipy__values_ref(call->values);
    *out = job;
    return 0;
}

void extipy__job_drop_call(struct extipy_job *job)
{
    free((char *)job->call.function);
    extipy_object_release(job->call.callee);
    extipy_values_free((struct extipy_values *)job->call.values);
    job->call = (struct extipy_call){0};
}

struct extipy_job *extipy_job_keep(struct extipy_job *job)
{
    if (job)
        atomic_fetch_add(&job->refs, 1);
    return job;
}

void extipy_job_release(struct extipy_job *job)
{
    if (!job || atomic_fetch_sub(&job->refs, 1) != 1)
        return;
    extipy__job_drop_call(job);
    extipy_values_free(job->result);
    extipy_exception_free(job->raised);
    free(job->err);
    pthread_cond_destroy(&job->settling);
    extipy__context_unref(job->ctx);
    free(job);
}

void *extipy_job_user(const struct extipy_job *job)
{
    return job->user;
}

/* ---- its place ---- */

/* Behind `prev`, or first. */
static void link_job(struct extipy_job_list *list, enum extipy_job_order by,
                     struct extipy_job *prev, struct extipy_job *job)
{
    struct extipy_job *next = prev ? prev->in[by].next : list->first;

    job->in[by].prev = prev;
    job->in[by].next = next;
    if (prev)
        prev->in[by].next = job;
    else
        list->first = job;
    if (next)
        next->in[by].prev = job;
    else
        list->last = job;
}

void extipy__job_append(struct extipy_job_list *list, struct extipy_job *job)
{
    link_job(list, EXTIPY_BY_TURN, list->last, job);
}

/* Mostly the last to come has the latest deadline. */
void extipy__job_insert(struct extipy_job_list *list, struct extipy_job *job)
{
    struct extipy_job *prev = list->last;

    while (prev && prev->deadline > job->deadline)
        prev = prev->in[EXTIPY_BY_DEADLINE].prev;
    link_job(list, EXTIPY_BY_DEADLINE, prev, job);
}

void extipy__job_remove(struct extipy_job_list *list, enum extipy_job_order by,
                        struct extipy_job *job)
{
    struct extipy_job *next = job->in[by].next, *prev = job->in[by].prev;

    if (next)
        next->in[by].prev = prev;
    else
        list->last = prev;
    if (prev)
        prev->in[by].next = next;
    else
        list->first = next;
}

/* ---- its end ---- */

void extipy__job_fail(struct extipy_job *job, const struct exti_error *err)
{
    job->code = err->code;
    job->err = malloc(sizeof *job->err);
    if (job->err)
        *job->err = *err;
}

/* Without a GIL. */
static int await_settling(struct extipy_job *job, uint64_t until)
{
    int settled;

    pthread_mutex_lock(&job->ctx->lock);
    while (!job->settled && pyrt_clock() < until)
        pyrt_cond_wait(&job->settling, &job->ctx->lock, until);
    settled = job->settled;
    pthread_mutex_unlock(&job->ctx->lock);
    return settled;
}

int extipy_job_wait(struct extipy_job *job, int64_t timeout, struct exti_error *err)
{
    struct extipy_attachment *paused;
    int rc, settled, works;

    if (!job)
        return pyrt_fail(err, EXTI_E_ARG, "the job is NULL");
    pthread_mutex_lock(&job->ctx->lock);
    settled = job->settled;
    works = extipy__context_works(job->ctx);
    pthread_mutex_unlock(&job->ctx->lock);
    if (settled)
        return 0;
    if (works || pthread_equal(job->ctx->keeper, pthread_self()))
        return pyrt_fail(err, EXTIPY_E_PLACE, "the job waits for this thread");
    rc = extipy__threads_pause(&paused, err);
    if (rc < 0)
        return rc;
    settled = await_settling(job, timeout < 0 ? PYRT_NEVER : pyrt_clock_after((uint64_t)timeout));
    extipy__threads_resume(paused);
    return settled ? 0 : pyrt_fail(err, EXTIPY_E_TIMEOUT, "the job has not ended in time");
}

int extipy_job_result(struct extipy_job *job, struct extipy_values **result,
                      struct extipy_exception **raised, struct exti_error *err)
{
    int rc;

    if (!job)
        return pyrt_fail(err, EXTI_E_ARG, "the job is NULL");
    pthread_mutex_lock(&job->ctx->lock);
    rc = job->state == EXTIPY_JOB_ENDED ? job->code : EXTIPY_E_STATE;
    if (rc == 0 && result) {
        *result = job->result;
        job->result = NULL;
    }
    if (rc == EXTIPY_E_RAISED && raised) {
        *raised = job->raised;
        job->raised = NULL;
    }
    pthread_mutex_unlock(&job->ctx->lock);
    if (rc == EXTIPY_E_STATE)
        return pyrt_fail(err, rc, "the job has not ended");
    if (rc == 0 || !err)
        return rc;
    if (job->err)
        *err = *job->err;
    else
        pyrt_fail(err, rc, "out of memory for what went wrong");
    return rc;
}
