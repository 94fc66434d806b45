/* An exception reaches a thread, whatever that does by then.  So it is sent by a thread that has
 * the GIL, while the worker cannot pass from one job to the next, and one that has not arrived when
 * the job ends is taken back.  Where there is no GIL, the worker waits for who is sending. */
#include "runtime/embed/interrupt.h"

#include "runtime/fail.h"

void extipy__interrupt_begin(struct extipy_job *job)
{
    struct extipy_ctx *c = job->ctx;
    unsigned long id = c->calls.PyThread_get_thread_ident();

    pthread_mutex_lock(&c->lock);
    c->jobs.running = job;
    c->jobs.worker_id = id;
    if (job->interrupt)
        pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

void extipy__interrupt_end(struct extipy_job *job, int ended)
{
    struct extipy_ctx *c = job->ctx;
    int sent;

    pthread_mutex_lock(&c->lock);
    c->jobs.running = NULL;
    while (c->jobs.sending)
        pthread_cond_wait(&c->jobs.work, &c->lock);
    sent = c->jobs.sent;
    c->jobs.sent = 0;
    pthread_mutex_unlock(&c->lock);
    if (sent && !ended)
        c->calls.PyThreadState_SetAsyncExc(c->calls.PyThread_get_thread_ident(), NULL);
}

int extipy__interrupt_due(const struct extipy_ctx *c)
{
    return c->jobs.running && c->jobs.running->interrupt;
}

/* Returns what is to be raised in the job that runs, if anything. */
static struct pyobj *begin_sending(struct extipy_ctx *c)
{
    struct pyobj *exception = NULL;

    pthread_mutex_lock(&c->lock);
    if (extipy__interrupt_due(c)) {
        exception = c->jobs.running->interrupt == EXTIPY_BY_CLOCK ? *c->calls.PyExc_TimeoutError
                                                                  : *c->py.keyboard_interrupt;
        c->jobs.running->interrupt = EXTIPY_NO_INTERRUPT;
        c->jobs.sending = c->jobs.sent = 1;
    }
    pthread_mutex_unlock(&c->lock);
    return exception;
}

static void end_sending(struct extipy_ctx *c)
{
    pthread_mutex_lock(&c->lock);
    c->jobs.sending = 0;
    pthread_cond_signal(&c->jobs.work);
    pthread_mutex_unlock(&c->lock);
}

void *extipy__interrupt_send(struct extipy_ctx *c, void *state)
{
    unsigned long worker = c->jobs.worker_id;
    struct pyobj *exception;

    pthread_mutex_unlock(&c->lock);
    c->py.PyEval_RestoreThread(state);
    exception = begin_sending(c);
    if (exception) {
        c->calls.PyThreadState_SetAsyncExc(worker, exception);
        end_sending(c);
    }
    state = c->py.PyEval_SaveThread();
    pthread_mutex_lock(&c->lock);
    return state;
}

int extipy_job_interrupt(struct extipy_job *job, struct exti_error *err)
{
    int begun;

    if (!job)
        return pyrt_fail(err, EXTI_E_ARG, "the job is NULL");
    pthread_mutex_lock(&job->ctx->lock);
    begun = job->state == EXTIPY_JOB_BEGUN;
    if (begun) {
        job->interrupt = EXTIPY_BY_PROGRAM;
        pthread_cond_broadcast(&job->ctx->changed);
    }
    pthread_mutex_unlock(&job->ctx->lock);
    return begun ? 0 : pyrt_fail(err, EXTIPY_E_STATE, "the job has not begun, or has ended");
}
