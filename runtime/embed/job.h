/* The handle of a job. */
#ifndef RUNTIME_EMBED_JOB_H
#define RUNTIME_EMBED_JOB_H

#include "runtime/embed/context.h"

enum extipy_job_state {
    EXTIPY_JOB_QUEUED,
    EXTIPY_JOB_BEGUN,
    EXTIPY_JOB_ENDED /* it has an outcome, which may be read and no more changes */
};

/* What a list is ordered by.  A job can be in one list of each kind. */
enum extipy_job_order { EXTIPY_BY_TURN, EXTIPY_BY_DEADLINE };

enum extipy_interrupt { EXTIPY_NO_INTERRUPT, EXTIPY_BY_PROGRAM, EXTIPY_BY_CLOCK };

struct extipy_job {
    atomic_size_t refs;
    struct extipy_ctx *ctx;  /* a reference */
    struct extipy_call call; /* owns what it names, until the job ends */
    void (*done)(struct extipy_job *job, void *user);
    void *user;
    struct extipy_queue *queue; /* a reference, until the job is in it */
    struct {
        struct extipy_job *next, *prev;
    } in[2];

    /* Of the context's lock. */
    enum extipy_job_state state;
    uint64_t deadline;               /* PYRT_NEVER: none, or it has passed */
    enum extipy_interrupt interrupt; /* one that has not been sent yet */
    int abandoned;                   /* the worker has not come back from it, and has its call */
    int settled;                     /* all have been told that it has ended */
    pthread_cond_t settling;

    /* The outcome. */
    int code;
    struct exti_error *err; /* of a code below 0; NULL: there was no memory for it */
    struct extipy_values *result;
    struct extipy_exception *raised;
};

/* Makes a job with one reference of a call that is in order. */
int extipy__job_new(struct extipy_job **out, struct extipy_ctx *c, const struct extipy_call *call,
                    struct exti_error *err);
/* Lets go of what is called and of its arguments. */
void extipy__job_drop_call(struct extipy_job *job);
/* What went wrong is the job's outcome. */
void extipy__job_fail(struct extipy_job *job, const struct exti_error *err);

void extipy__job_append(struct extipy_job_list *list, struct extipy_job *job);
/* Into a list by deadlines. */
void extipy__job_insert(struct extipy_job_list *list, struct extipy_job *job);
void extipy__job_remove(struct extipy_job_list *list, enum extipy_job_order by,
                        struct extipy_job *job);

#endif
