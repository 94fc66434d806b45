#include "bindings/python/ext/interrupt.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#include "bindings/python/ext/visits.h"

static pthread_mutex_t watch_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction before;                /* Python's, or what is on top of that */
static void (*_Atomic pythons)(int) = SIG_ERR; /* that, once it was seen without SA_SIGINFO */
static sem_t signalled;
static atomic_int watching;
static atomic_int looked; /* at the handler, lately: the thread that interrupts will do it again */
static int (*is_wanted)(void);

/* ---- the handler ---- */

static void on_sigint(int number, siginfo_t *info, void *context)
{
    int saved = errno;

    pkg_visits_signalled();
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
    struct sigaction now, ours, old;

    if (sigaction(SIGINT, NULL, &now) != 0)
        return;
    if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_sigint)
        return;
    if (!(now.sa_flags & SA_SIGINFO) && (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN))
        return;
    before = now;
    if (!(now.sa_flags & SA_SIGINFO))
        atomic_store(&pythons, now.sa_handler);
    ours = now;
    ours.sa_flags |= SA_SIGINFO;
    ours.sa_sigaction = on_sigint;
    /* The program may have put another one meanwhile. */
    if (sigaction(SIGINT, &ours, &old) == 0 && old.sa_handler != now.sa_handler)
        sigaction(SIGINT, &old, NULL);
}

/* Python's handler is back when the program has changed it for a while, as Jupyter's kernel does
 * round each cell. */
static void keep_handler(void)
{
    struct sigaction now;

    if (!atomic_load(&watching) || sigaction(SIGINT, NULL, &now) != 0)
        return;
    if ((now.sa_flags & SA_SIGINFO) || now.sa_handler != atomic_load(&pythons))
        return;
    pthread_mutex_lock(&watch_lock);
    put_handler();
    pthread_mutex_unlock(&watch_lock);
}

/* To look takes about as long as a short call, so of many that begin within a while one looks, and
 * after them the thread does for those that still run. */
int pkg_interrupt_begin(struct pkg_visit *visit, uint64_t id, struct exti_error *err)
{
    if (!atomic_load(&looked) && atomic_load(&watching) && !atomic_exchange(&looked, 1)) {
        keep_handler();
        sem_post(&signalled);
    }
    return pkg_visits_begin(visit, id, err);
}

/* ---- the thread that interrupts ---- */

/* First it lets calls look again, so that all that have not looked have begun by then. */
static void look_again(void)
{
    const struct timespec while_they_begin = {.tv_nsec = 10000000};

    nanosleep(&while_they_begin, NULL);
    atomic_store(&looked, 0);
    keep_handler();
}

static void *watch(void *unused)
{
    unsigned long seen = 0, now;

    for (;;) {
        while (sem_wait(&signalled) != 0)
            continue;
        now = pkg_visits_signals();
        if (now != seen && atomic_load(&watching) && is_wanted())
            pkg_visits_interrupt();
        seen = now;
        if (atomic_load(&looked))
            look_again();
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

/* ---- the beginning and the end ---- */

int pkg_interrupt_watch(int (*wanted)(void))
{
    int rc = 0;

    pthread_mutex_lock(&watch_lock);
    if (!atomic_load(&watching)) {
        is_wanted = wanted;
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
    watch_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    atomic_store(&watching, 0);
    atomic_store(&looked, 0);
}
