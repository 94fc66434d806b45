/* What the handle of a context holds, and the list of those that are open. */
#ifndef RUNTIME_EMBED_CONTEXT_H
#define RUNTIME_EMBED_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/embed/calls.h"
#include "runtime/heap.h"
#include <extisolate/python.h>

enum extipy_phase {
    EXTIPY_OPEN,
    EXTIPY_CLOSING, /* nobody enters any more who is not inside */
    EXTIPY_ENDED    /* the interpreter is being finalised, or was */
};

struct extipy_job_list {
    struct extipy_job *first, *last;
};

/* A context's jobs, and the thread that runs them, which is the worker. */
struct extipy_jobs {
    struct extipy_job_list queued; /* in the order of their submission */
    struct extipy_job_list unrun;  /* ended without having run; the context's thread says so */
    struct extipy_job_list timed;  /* that have a deadline and have not ended, the soonest first */
    int wanted;                    /* the context's own thread is to start the worker */
    int started;
    pthread_t worker;
    pthread_cond_t work; /* the worker waits for it */

    int over;                   /* the worker takes no more jobs, and ends */
    int abandoned;              /* it may never come back from its job */
    struct extipy_job *running; /* whose call the worker is in; it may be interrupted */
    unsigned long worker_id;    /* what Python calls the worker; of when a job is running */
    int sending;                /* an exception is being sent to the worker */
    int sent;                   /* one was, since the job began */
};

/* Where one of the streams goes. */
struct extipy_output {
    struct extipy_ctx *ctx;
    enum extipy_stream stream;
    int fd; /* 0: to the callback */
    struct extipy_sink *sink;
    extipy_output_fn callback;
    void *user;
    struct extipy_line *lines; /* that were begun; of the context's lock */
};

struct extipy_outputs {
    struct extipy_output streams[2];
    /* Of the context's lock. */
    size_t delivering; /* threads that do */
    int ended;
};

struct extipy_attachment;

struct extipy_ctx {
    atomic_size_t refs; /* of the program, until it is closed, and of threads that were inside */
    struct exti_ctx *loader;
    struct pyrt_heap *heap;
    struct pyrt_api py;
    struct extipy_calls calls;
    struct extipy_ctx *next; /* in the list of open ones */
    pthread_t keeper;        /* of the library's; does what is to be done while nobody is inside */
    int on_caller;           /* the program's thread initialised, and finalises; else the keeper */
    int has_directory;       /* the context's threads have one of their own */
    struct exti_error directory_error; /* why not */
    void *main_state;                  /* the state of whichever did, while it does not run */

    atomic_ulong called;    /* how many calls were made, and sources run */
    atomic_int pending;     /* `released` is not empty */
    atomic_int exit_status; /* with which its own code has ended it; -1: it has not */
    atomic_size_t inside;   /* threads that entered and have not left (context.c) */

    pthread_mutex_t lock; /* of what follows; nothing is called while it is held */
    pthread_cond_t changed;
    enum extipy_phase phase;
    atomic_int started;                    /* it is known whether CPython has started */
    size_t stuck;                          /* of those inside, who may never leave */
    size_t leaving;                        /* likewise, that have ended it, and run nothing of it */
    size_t attached;                       /* threads that have a thread state */
    struct extipy_attachment *attachments; /* theirs */
    size_t detaching;                      /* threads that tell the loader that they have none */
    struct extipy_object *objects, *released;
    struct exti_links *links; /* of handles and their objects; guarded by the GIL */
    size_t buffers;           /* of its memory, that the program or other contexts have */
    int parked; /* Python has stopped, and is finalised when there are no buffers any more */
    int finalised;
    int exit_seen; /* its own thread has seen to those inside, as its code has ended it */
    int gil_kept;  /* its own thread has the GIL for ever: nothing of Python runs any more */
    struct extipy_exporter *exporters; /* that show it others' buffers */
    struct pyobj *exporter_type;       /* guarded by the GIL */
    struct extipy_jobs jobs;
    struct extipy_outputs output;
};

/* Whether its own code has ended the context: nobody enters any more. */
static inline int extipy__has_exited(const struct extipy_ctx *c)
{
    return atomic_load(&c->exit_status) >= 0;
}

/* EXTIPY_E_EXITED, with a message. */
int extipy__exited(const struct extipy_ctx *c, struct exti_error *err);

/* Returns a context with one reference, or NULL. */
struct extipy_ctx *extipy__context_new(void);
struct extipy_ctx *extipy__context_ref(struct extipy_ctx *c);
void extipy__context_unref(struct extipy_ctx *c);

/* How many threads are inside; the lock is held, and they are watched: from then on they come and
 * go with the lock.  Who changes the phase or the exit status has them watched before; as a signal
 * handler may. */
size_t extipy__context_inside(const struct extipy_ctx *c);
void extipy__context_watch(struct extipy_ctx *c);

/* Its own code has ended the context, and all who were inside have left, or never will; the lock is
 * held. */
int extipy__has_emptied(const struct extipy_ctx *c);

/* Between these two, of which the first fails with EXTIPY_E_CLOSED after the phase `last`, and with
 * EXTIPY_E_EXITED, the context is not finalised.  `detached`: a thread has no state in it any
 * more. */
int extipy__context_begin_visit(struct extipy_ctx *c, enum extipy_phase last,
                                struct exti_error *err);
void extipy__context_end_visit(struct extipy_ctx *c, int detached);

/* Whether the calling thread is the one that runs the context's jobs; the lock is held. */
static inline int extipy__context_works(const struct extipy_ctx *c)
{
    return c->jobs.started && pthread_equal(c->jobs.worker, pthread_self());
}

void extipy__contexts_add(struct extipy_ctx *c);
void extipy__contexts_remove(struct extipy_ctx *c);
/* Returns a reference to the listed context that has a thread state of the calling thread, or
 * NULL. */
struct extipy_ctx *extipy__contexts_native(void);

#endif
