/* The handle of a job. */
#ifndef RUNTIME_EMBED_JOB_H
#define RUNTIME_EMBED_JOB_H

#include "runtime/embed/context.h"

enum extipy_job_state {
    EXTIPY_JOB_QUEUED,
    EXTIPY_JOB_BEGUN,
    EXTIPY_JOB_ENDED /* it has an outcome, which may be read and no more changes */
};

struct extipy_job {
    atomic_size_t refs;
    struct extipy_ctx *ctx;  /* a reference */
    struct extipy_call call; /* owns what it names, until the job ends */
    void (*done)(struct extipy_job *job, void *user);
    void *user;
    struct extipy_queue *queue;     /* a reference, until the job is in it */
    struct extipy_job *next, *prev; /* of the list that it is in */

    /* Of the context's lock. */
    enum extipy_job_state state;
    int settled; /* all have been told that it has ended */
    pthread_cond_t settling;

    /* The outcome. */
    int code;
    struct exti_error err;
    struct extipy_values *result;
    struct extipy_exception *raised;
};

/* Makes a job with one reference of a call that is in order. */
int extipy__job_new(struct extipy_job **out, struct extipy_ctx *c, const struct extipy_call *call,
                    struct exti_error *err);
/* Lets go of what is called and of its arguments. */
void extipy__job_drop_call(struct extipy_job *job);

void extipy__job_append(struct extipy_job_list *list, struct extipy_job *job);
void extipy__job_remove(struct extipy_job_list *list, struct extipy_job *job);

#endif
