#include "loader/track/helper_thread.h"

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

/* The functions are the library's own, and need little; sanitizers need more. */
#define STACK_SIZE ((size_t)256 << 10)

static int start(struct exti_helper_thread *t)
{
    pthread_attr_t attr;
    int rc = pthread_attr_init(&attr);

    if (rc)
        return rc;
    pthread_attr_setstacksize(&attr, STACK_SIZE);
    rc = pthread_create(&t->thread, &attr, help, t);
    pthread_attr_destroy(&attr);
    return rc;
}

struct exti_helper_thread *exti__helper_thread_start(void)
{
    struct exti_helper_thread *t = exti__calloc(1, sizeof *t);
    sigset_t every, signals;
    int rc;

    if (!t)
        return NULL;
    sem_init(&t->asked, 0, 0);
    sem_init(&t->done, 0, 0);
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &signals);
    rc = start(t);
    pthread_sigmask(SIG_SETMASK, &signals, NULL);
    if (rc) {
        exti__helper_thread_forget(t);
        return NULL;
    }
    return t;
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
