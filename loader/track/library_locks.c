#define _GNU_SOURCE /* pthread_mutex_clocklock */
#include "loader/track/library_locks.h"

#include <errno.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "loader/track/redirects.h"

/* How often a fork pauses for threads, and they for it, which takes longer: 0.2 and 2 seconds, and
 * more where the machine is busy, as who is waited for is late, too. */
#define FORK_PAUSES 2000
#define THREAD_PAUSES 20000
#define PAUSE_NS 50000

/* How many threads hold locks.  Each counts itself in one of these, so that threads which use
 * different locks do not take a cache line from each other. */
#define STRIPES 64
static struct {
    alignas(64) atomic_uint threads;
} stripes[STRIPES];

static atomic_bool closed; /* a thread forks */

/* How many held locks when the last fork had waited: it is not waited for those again, as they may
 * hold them for hours.  Who forks has the fork guard's lock, too. */
static unsigned lasting;

/* This thread's locks, and its forks. */
static _Thread_local volatile unsigned depth;
static _Thread_local atomic_uint *own_stripe;

/* ---- holding and waiting ---- */

static atomic_uint *own_count(void)
{
    static atomic_uint next;

    if (!own_stripe)
        own_stripe = &stripes[next++ % STRIPES].threads;
    return own_stripe;
}

/* No cancellation point: pthread_mutex_lock is none. */
static void pause_briefly(void)
{
    const struct timespec t = {.tv_nsec = PAUSE_NS};
    const int error = errno;
    int cancel;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    nanosleep(&t, NULL);
    pthread_setcancelstate(cancel, NULL);
    errno = error;
}

static void wait_for_fork(void)
{
    int pauses = 0;

    do {
        atomic_fetch_sub(own_count(), 1);
        for (; closed && pauses < THREAD_PAUSES; pauses++)
            pause_briefly();
        atomic_fetch_add(own_count(), 1);
    } while (closed && pauses < THREAD_PAUSES);
}

/* A thread that holds a lock takes more without waiting, as others may wait for the first. */
static void enter(void)
{
    if (depth++)
        return;
    atomic_fetch_add(own_count(), 1);
    if (closed)
        wait_for_fork();
}

/* Locks that were taken before the library's calls led here are not counted. */
static void leave(void)
{
    if (depth && !--depth)
        atomic_fetch_sub(own_count(), 1);
}

unsigned exti__library_locks_held(void)
{
    unsigned n = 0;

    for (size_t i = 0; i < STRIPES; i++)
        n += stripes[i].threads;
    return n;
}

/* ---- forks ---- */

/* A signal handler that forks may have interrupted this thread before it was counted. */
static unsigned others(void)
{
    const unsigned n = exti__library_locks_held();

    return n ? n - 1 : 0;
}

/* Handlers that run after this one may take locks, too: this thread counts as one that has. */
static void before_fork(void)
{
    unsigned held;

    if (!depth++)
        atomic_fetch_add(own_count(), 1);
    closed = true;
    /* Counted once: who comes in between counts itself for a moment, too. */
    for (int pauses = 0; (held = others()) > lasting && pauses < FORK_PAUSES; pauses++)
        pause_briefly();
    lasting = held;
}

static void in_parent(void)
{
    closed = false;
    leave();
}

static void in_child(void)
{
    for (size_t i = 0; i < STRIPES; i++)
        stripes[i].threads = 0;
    *own_count() = 1;
    lasting = 0;
    in_parent();
}

static int install_error;

static void install(void)
{
    install_error = pthread_atfork(before_fork, in_parent, in_child);
}

int exti__library_locks_survive_forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, install);
    return install_error;
}

/* ---- the calls ---- */

/* Older C libraries lack these. */
extern int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock,
                                   const struct timespec *end) __attribute__((weak));
extern int pthread_rwlock_clockrdlock(pthread_rwlock_t *lock, clockid_t clock,
                                      const struct timespec *end) __attribute__((weak));
extern int pthread_rwlock_clockwrlock(pthread_rwlock_t *lock, clockid_t clock,
                                      const struct timespec *end) __attribute__((weak));
extern int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
                                  const struct timespec *end) __attribute__((weak));

static int entered(int rc)
{
    if (rc && rc != EOWNERDEAD)
        leave();
    return rc;
}

static int left(int rc)
{
    if (!rc)
        leave();
    return rc;
}

static int mutex_lock(pthread_mutex_t *mutex)
{
    enter();
    return entered(pthread_mutex_lock(mutex));
}

static int mutex_trylock(pthread_mutex_t *mutex)
{
    enter();
    return entered(pthread_mutex_trylock(mutex));
}

static int mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *end)
{
    enter();
    return entered(pthread_mutex_timedlock(mutex, end));
}

static int mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *end)
{
    enter();
    return entered(pthread_mutex_clocklock(mutex, clock, end));
}

static int mutex_unlock(pthread_mutex_t *mutex)
{
    return left(pthread_mutex_unlock(mutex));
}

static int rwlock_rdlock(pthread_rwlock_t *lock)
{
    enter();
    return entered(pthread_rwlock_rdlock(lock));
}

static int rwlock_wrlock(pthread_rwlock_t *lock)
{
    enter();
    return entered(pthread_rwlock_wrlock(lock));
}

static int rwlock_tryrdlock(pthread_rwlock_t *lock)
{
    enter();
    return entered(pthread_rwlock_tryrdlock(lock));
}

static int rwlock_trywrlock(pthread_rwlock_t *lock)
{
    enter();
    return entered(pthread_rwlock_trywrlock(lock));
}

static int rwlock_timedrdlock(pthread_rwlock_t *lock, const struct timespec *end)
{
    enter();
    return entered(pthread_rwlock_timedrdlock(lock, end));
}

static int rwlock_timedwrlock(pthread_rwlock_t *lock, const struct timespec *end)
{
    enter();
    return entered(pthread_rwlock_timedwrlock(lock, end));
}

static int rwlock_clockrdlock(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *end)
{
    enter();
    return entered(pthread_rwlock_clockrdlock(lock, clock, end));
}

static int rwlock_clockwrlock(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *end)
{
    enter();
    return entered(pthread_rwlock_clockwrlock(lock, clock, end));
}

static int rwlock_unlock(pthread_rwlock_t *lock)
{
    return left(pthread_rwlock_unlock(lock));
}

/* Who waits for a condition has given its mutex away, and may wait for ever.  A mutex that is not
 * counted, as a copy has locked it, stays so.  A thread that is cancelled meanwhile unlocks it
 * without having counted it again. */
static bool give_away(void)
{
    const bool only = depth == 1;

    if (only)
        leave();
    return only;
}

/* The mutex is this thread's again, so there is no waiting for a fork. */
static int taken_back(bool only, int rc)
{
    if (only && !depth++)
        atomic_fetch_add(own_count(), 1);
    return rc;
}

static int cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    const bool only = give_away();

    return taken_back(only, pthread_cond_wait(cond, mutex));
}

static int cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *end)
{
    const bool only = give_away();

    return taken_back(only, pthread_cond_timedwait(cond, mutex, end));
}

static int cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
                          const struct timespec *end)
{
    const bool only = give_away();

    return taken_back(only, pthread_cond_clockwait(cond, mutex, clock, end));
}

#define IF(function, instead) ((function) ? EXTI_ADDRESS(instead) : NULL)

void *exti__library_lock_call(const char *symbol)
{
    const struct exti_redirect calls[] = {
        {"pthread_mutex_lock", EXTI_ADDRESS(mutex_lock)},
        {"pthread_mutex_trylock", EXTI_ADDRESS(mutex_trylock)},
        {"pthread_mutex_timedlock", EXTI_ADDRESS(mutex_timedlock)},
        {"pthread_mutex_clocklock", IF(pthread_mutex_clocklock, mutex_clocklock)},
        {"pthread_mutex_unlock", EXTI_ADDRESS(mutex_unlock)},
        {"pthread_rwlock_rdlock", EXTI_ADDRESS(rwlock_rdlock)},
        {"pthread_rwlock_wrlock", EXTI_ADDRESS(rwlock_wrlock)},
        {"pthread_rwlock_tryrdlock", EXTI_ADDRESS(rwlock_tryrdlock)},
        {"pthread_rwlock_trywrlock", EXTI_ADDRESS(rwlock_trywrlock)},
        {"pthread_rwlock_timedrdlock", EXTI_ADDRESS(rwlock_timedrdlock)},
        {"pthread_rwlock_timedwrlock", EXTI_ADDRESS(rwlock_timedwrlock)},
        {"pthread_rwlock_clockrdlock", IF(pthread_rwlock_clockrdlock, rwlock_clockrdlock)},
        {"pthread_rwlock_clockwrlock", IF(pthread_rwlock_clockwrlock, rwlock_clockwrlock)},
        {"pthread_rwlock_unlock", EXTI_ADDRESS(rwlock_unlock)},
        {"pthread_cond_wait", EXTI_ADDRESS(cond_wait)},
        {"pthread_cond_timedwait", EXTI_ADDRESS(cond_timedwait)},
        {"pthread_cond_clockwait", IF(pthread_cond_clockwait, cond_clockwait)},
    };

    return exti__redirect_find(calls, sizeof calls / sizeof *calls, symbol);
}
