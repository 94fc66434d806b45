/* By system calls: the C library's functions may allocate, and alarm(2) may be called in signal
 * handlers. */
#define _GNU_SOURCE /* SIGEV_THREAD_ID */
#include "loader/track/signal_timers.h"

#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "loader/track/signal_dispatch.h"
#include "loader/track/timer_table.h"

#define KINDS 3 /* ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF */

struct timers {
    const struct exti_ctx *ctx;
    bool made[KINDS];
    int ids[KINDS];
    struct timers *next;
};

/* Guards the list.  Signals are blocked meanwhile.  Innermost. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static struct timers *all;

static void lock_timers(sigset_t *signals)
{
    sigset_t every;

    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, signals);
    pthread_mutex_lock(&lock);
}

static void unlock_timers(const sigset_t *signals)
{
    pthread_mutex_unlock(&lock);
    pthread_sigmask(SIG_SETMASK, signals, NULL);
}

/* ---- one timer; the lock is held ---- */

static int signal_of(int kind)
{
    static const int signals[KINDS] = {SIGALRM, SIGVTALRM, SIGPROF};

    return signals[kind];
}

/* include/linux/posix-timers_types.h: a clock of the calling thread's processor time, of user and
 * system code (0) or of user code alone (1). */
static int clock_of(int kind)
{
    return kind == ITIMER_REAL ? CLOCK_MONOTONIC : -8 | 4 | (kind == ITIMER_VIRTUAL);
}

static pid_t handling_thread(const struct exti_signals *s, int kind)
{
    const struct exti_signal_action a = exti__signal_action(s, signal_of(kind));

    return kind == ITIMER_REAL && (a.waited || a.handler != SIG_DFL) ? a.thread
                                                                     : (pid_t)syscall(SYS_gettid);
}

static void delete_timer(struct timers *t, int kind)
{
    if (t->made[kind])
        syscall(SYS_timer_delete, t->ids[kind]);
    t->made[kind] = false;
}

static struct timers **find_timers(const struct exti_ctx *ctx)
{
    struct timers **link = &all;

    while (*link && (*link)->ctx != ctx)
        link = &(*link)->next;
    return link;
}

static int start_timer(struct timers *t, const struct exti_signals *s, int kind,
                       const struct itimerval *next)
{
    const struct itimerspec spec = {
        {next->it_interval.tv_sec, next->it_interval.tv_usec * 1000},
        {next->it_value.tv_sec, next->it_value.tv_usec * 1000},
    };
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID,
                             .sigev_signo = signal_of(kind),
                             .sigev_value = exti__signal_timer_value(s)};

    event._sigev_un._tid = handling_thread(s, kind);
    if (syscall(SYS_timer_create, clock_of(kind), &event, &t->ids[kind]))
        return errno;
    t->made[kind] = true;
    return syscall(SYS_timer_settime, t->ids[kind], 0, &spec, NULL) ? errno : 0;
}

static int read_timer(const struct timers *t, int kind, struct itimerval *out)
{
    struct itimerspec left = {{0, 0}, {0, 0}};

    if (t && t->made[kind] && syscall(SYS_timer_gettime, t->ids[kind], &left))
        return errno;
    out->it_value.tv_sec = left.it_value.tv_sec;
    out->it_value.tv_usec = left.it_value.tv_nsec / 1000;
    out->it_interval.tv_sec = left.it_interval.tv_sec;
    out->it_interval.tv_usec = left.it_interval.tv_nsec / 1000;
    return 0;
}

static bool is_time(const struct timeval *t)
{
    return t->tv_sec >= 0 && t->tv_usec >= 0 && t->tv_usec < 1000000;
}

static int set_timer(struct exti_ctx *ctx, struct exti_signals *s, int kind,
                     const struct itimerval *next)
{
    struct timers **link = find_timers(ctx);

    if (!*link)
        *link = exti__calloc(1, sizeof **link);
    if (!*link)
        return ENOMEM;
    (*link)->ctx = ctx;
    delete_timer(*link, kind);
    if (next->it_value.tv_sec == 0 && next->it_value.tv_usec == 0)
        return 0;
    return start_timer(*link, s, kind, next);
}

/* ---- what contexts call ---- */

int exti__signal_timer(struct exti_ctx *ctx, struct exti_signals *s, int kind,
                       const struct itimerval *next, struct itimerval *old)
{
    struct itimerval before = {{0, 0}, {0, 0}};
    sigset_t signals;
    int rc;

    if (kind < 0 || kind >= KINDS ||
        (next && !(is_time(&next->it_value) && is_time(&next->it_interval))))
        return EINVAL;
    if (next)
        exti__signal_expect(s, signal_of(kind));
    lock_timers(&signals);
    rc = read_timer(*find_timers(ctx), kind, &before);
    if (!rc && next)
        rc = set_timer(ctx, s, kind, next);
    unlock_timers(&signals);
    if (!rc && old)
        *old = before;
    return rc;
}

/* ---- timer_create ---- */

static bool is_alive(pid_t thread)
{
    return syscall(SYS_tgkill, getpid(), thread, 0) == 0;
}

/* What the system's function is to be given: if there is a thread that takes the signal, that one
 * gets it, and no thread of others is interrupted. */
static struct sigevent event_of(const struct exti_signals *s, const struct sigevent *given)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    struct exti_signal_action a;

    if (given)
        event = *given;
    if (event.sigev_notify != SIGEV_SIGNAL)
        return event;
    a = exti__signal_action(s, event.sigev_signo);
    if ((a.waited || (a.handler != SIG_DFL && a.handler != SIG_IGN)) && is_alive(a.thread)) {
        event.sigev_notify = SIGEV_THREAD_ID;
        event._sigev_un._tid = a.thread;
    }
    return event;
}

static bool sends(const struct sigevent *event)
{
    return event->sigev_notify == SIGEV_SIGNAL || event->sigev_notify == SIGEV_THREAD_ID;
}

int exti__signal_timer_create(struct exti_ctx *ctx, struct exti_signals *s, clockid_t clock,
                              const struct sigevent *event, timer_t *out)
{
    struct sigevent own = event_of(s, event);
    sigset_t signals;
    timer_t timer;
    bool added;

    if (timer_create(clock, &own, &timer))
        return -1;
    if (sends(&own))
        exti__signal_expect(s, own.sigev_signo);
    lock_timers(&signals);
    added = exti__timer_add(timer, ctx, sends(&own) ? s : NULL);
    unlock_timers(&signals);
    if (!added) {
        timer_delete(timer);
        errno = EAGAIN;
        return -1;
    }
    *out = timer;
    return 0;
}

int exti__signal_timer_delete(timer_t timer)
{
    sigset_t signals;

    lock_timers(&signals);
    exti__timer_remove(timer);
    unlock_timers(&signals);
    return timer_delete(timer);
}

void exti__signal_timers_end(const struct exti_ctx *ctx)
{
    struct timers **link, *t;
    sigset_t signals;
    timer_t timer;

    lock_timers(&signals);
    link = find_timers(ctx);
    t = *link;
    if (t) {
        *link = t->next;
        for (int kind = 0; kind < KINDS; kind++)
            delete_timer(t, kind);
        exti__free(t);
    }
    while (exti__timer_next(ctx, &timer)) {
        exti__timer_remove(timer);
        timer_delete(timer);
    }
    unlock_timers(&signals);
}

void exti__signal_timers_stop(const struct exti_ctx *ctx)
{
    struct timers *t;
    sigset_t signals;

    lock_timers(&signals);
    t = *find_timers(ctx);
    for (int kind = 0; t && kind < KINDS; kind++)
        delete_timer(t, kind);
    unlock_timers(&signals);
}

/* ---- forks ---- */

static sigset_t fork_signals; /* of the thread that forks, which holds the lock */

static void begin_fork(void)
{
    sigset_t signals;

    lock_timers(&signals);
    fork_signals = signals;
}

static void end_fork(void)
{
    const sigset_t signals = fork_signals;

    unlock_timers(&signals);
}

/* POSIX fork: a child has no timers. */
static void begin_child(void)
{
    exti__timer_forget_all();
    for (struct timers *t = all; t; t = t->next)
        for (int kind = 0; kind < KINDS; kind++)
            t->made[kind] = false;
    end_fork();
}

static void install_fork_handlers(void)
{
    pthread_atfork(begin_fork, end_fork, begin_child);
}

void exti__signal_timers_survive_forks(void)
{
    pthread_once(&fork_once, install_fork_handlers);
}
