#include "bindings/python/ext/interrupt.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>

static pthread_mutex_t visits_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t sent = PTHREAD_COND_INITIALIZER;
static struct pkg_visit *visits;
static atomic_ulong rounds; /* SIGINTs so far: who began to call after one is not meant by it */

static pthread_mutex_t watch_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction before; /* Python's */
static sem_t signalled;
static atomic_int watching;
static int (*is_wanted)(void);

/* ---- calls ---- */

/* Calls a function of the context with the number of a thread. */
static void tell(struct extipy_ctx *ctx, const char *function, unsigned long thread)
{
    struct extipy_call call = {.size = sizeof call, .function = function};
    struct extipy_values *values;
    size_t number;

    if (extipy_values_new(&values, NULL) < 0)
        return;
    number = extipy_int(values, (int64_t)thread);
    call.values = values;
    call.args = extipy_container(values, EXTIPY_TUPLE, &number, 1);
    extipy_call(ctx, &call, NULL, NULL, NULL);
    extipy_values_free(values);
}

void pkg_interrupt_begin(struct pkg_visit *v, struct extipy_ctx *ctx)
{
    *v = (struct pkg_visit){.ctx = ctx, .thread = (unsigned long)pthread_self()};
    pthread_mutex_lock(&visits_lock);
    v->round = atomic_load(&rounds);
    v->next = visits;
    v->link = &visits;
    if (v->next)
        v->next->link = &v->next;
    visits = v;
    pthread_mutex_unlock(&visits_lock);
}

void pkg_interrupt_end(struct pkg_visit *v)
{
    pthread_mutex_lock(&visits_lock);
    while (v->busy)
        pthread_cond_wait(&sent, &visits_lock);
    *v->link = v->next;
    if (v->next)
        v->next->link = v->link;
    pthread_mutex_unlock(&visits_lock);
    /* It may have come too late for this call, and must not hit the next one. */
    if (v->sent)
        tell(v->ctx, "extisolate._dispatch:calm", v->thread);
}

int pkg_interrupt_inside(const struct extipy_ctx *ctx)
{
    unsigned long self = (unsigned long)pthread_self();
    const struct pkg_visit *v;

    pthread_mutex_lock(&visits_lock);
    for (v = visits; v; v = v->next)
        if (v->ctx == ctx && v->thread == self)
            break;
    pthread_mutex_unlock(&visits_lock);
    return v != NULL;
}

/* ---- the thread that interrupts ---- */

static struct pkg_visit *next_visit(unsigned long this_round)
{
    struct pkg_visit *v = visits;

    while (v && v->round >= this_round)
        v = v->next;
    if (v) {
        v->round = this_round;
        v->busy = 1;
    }
    return v;
}

/* Those that were in calls then.  A thread that is in several contexts is interrupted in each. */
static void interrupt_all(unsigned long this_round)
{
    struct pkg_visit *v;

    pthread_mutex_lock(&visits_lock);
    while ((v = next_visit(this_round))) {
        pthread_mutex_unlock(&visits_lock);
        tell(v->ctx, "extisolate._dispatch:interrupt", v->thread);
        extipy_detach(v->ctx, NULL); /* or this thread would keep the context mapped */
        pthread_mutex_lock(&visits_lock);
        v->busy = 0;
        v->sent = 1;
        pthread_cond_broadcast(&sent);
    }
    pthread_mutex_unlock(&visits_lock);
}

static void *watch(void *unused)
{
    unsigned long this_round;

    for (;;) {
        while (sem_wait(&signalled) != 0)
            continue;
        this_round = atomic_load(&rounds);
        if (atomic_load(&watching) && is_wanted())
            interrupt_all(this_round);
    }
    return unused;
}

static int start_watch(void)
{
    sigset_t all, old;
    pthread_t thread;
    int rc;

    if (sem_init(&signalled, 0, 0) != 0)
        return -1;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&thread, NULL, watch, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc == 0)
        pthread_detach(thread);
    return rc == 0 ? 0 : -1;
}

/* ---- the handler ---- */

static void on_sigint(int number, siginfo_t *info, void *context)
{
    int saved = errno;

    atomic_fetch_add(&rounds, 1);
    if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(number, info, context);
    else
        before.sa_handler(number);
    if (atomic_load(&watching))
        sem_post(&signalled);
    errno = saved;
}

static void put_handler(void)
{
    struct sigaction now, ours;

    if (sigaction(SIGINT, NULL, &now) != 0)
        return;
    if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_sigint)
        return;
    if (!(now.sa_flags & SA_SIGINFO) && (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN))
        return;
    before = now;
    ours = now;
    ours.sa_flags |= SA_SIGINFO;
    ours.sa_sigaction = on_sigint;
    sigaction(SIGINT, &ours, NULL);
}

int pkg_interrupt_watch(int (*wanted)(void))
{
    int rc = 0;

    pthread_mutex_lock(&watch_lock);
    is_wanted = wanted;
    if (!atomic_load(&watching)) {
        rc = start_watch();
        atomic_store(&watching, rc == 0);
    }
    if (rc == 0)
        put_handler();
    pthread_mutex_unlock(&watch_lock);
    return rc;
}

void pkg_interrupt_stop(void)
{
    atomic_store(&watching, 0);
}

void pkg_interrupt_forked(void)
{
    visits_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    watch_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    sent = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    visits = NULL;
    atomic_store(&watching, 0);
}
