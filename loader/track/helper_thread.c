#include "loader/track/helper_thread.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>

#include "base/mem.h"

struct exti_helper_thread {
    pthread_t thread;
    sem_t asked, done;
    void (*function)(void *arg); /* NULL: the thread is to end */
    void *arg;
};

/* A debugger may interrupt it. */
static void wait_for(sem_t *s)
{
    while (sem_wait(s)) {
    }
}

static void *help(void *arg)
{
    struct exti_helper_thread *t = arg;

    for (wait_for(&t->asked); t->function; wait_for(&t->asked)) {
        t->function(t->arg);
        sem_post(&t->done);
    }
    return NULL;
}

/* Its stack is as large as any, as the C library takes static TLS from that; what is not used is no
 * memory. */
int exti__helper_thread_start(struct exti_helper_thread **out)
{
    struct exti_helper_thread *t = exti__calloc(1, sizeof *t);
    sigset_t every, signals;
    int rc;

    if (!t)
        return ENOMEM;
    sem_init(&t->asked, 0, 0);
    sem_init(&t->done, 0, 0);
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &signals);
    rc = pthread_create(&t->thread, NULL, help, t);
    pthread_sigmask(SIG_SETMASK, &signals, NULL);
    if (rc)
        exti__helper_thread_forget(t);
    else
        *out = t;
    return rc;
}

void exti__helper_thread_run(struct exti_helper_thread *t, void (*function)(void *arg), void *arg)
{
    t->function = function;
    t->arg = arg;
    sem_post(&t->asked);
    wait_for(&t->done);
}

void exti__helper_thread_end(struct exti_helper_thread *t)
{
    t->function = NULL;
    sem_post(&t->asked);
    pthread_join(t->thread, NULL);
    exti__helper_thread_forget(t);
}

void exti__helper_thread_forget(struct exti_helper_thread *t)
{
    sem_destroy(&t->asked);
    sem_destroy(&t->done);
    exti__free(t);
}
