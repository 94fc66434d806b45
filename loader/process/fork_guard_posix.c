#include "loader/process/fork_guard.h"

#include <pthread.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned inside; /* threads that open or close a library */
static bool forking;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int install_error;

static _Thread_local volatile unsigned depth; /* of this thread's calls, and its forks */

#define PATIENCE_S 5

struct timespec exti__fork_patience_end(void)
{
    struct timespec end;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += PATIENCE_S;
    return end;
}

/* A finaliser, or a constructor of a library that is no copy, may wait for a thread that forks.
 * Signal handlers that come here during a fork count as nested: the lock is this thread's. */
static void before_fork(void)
{
    const struct timespec end = exti__fork_patience_end();
    const unsigned own = depth++ > 0;
    int rc = 0;

    pthread_mutex_lock(&lock);
    forking = true;
    while (inside > own && !rc)
        rc = pthread_cond_timedwait(&changed, &lock, &end);
}

static void in_parent(void)
{
    forking = false;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    depth--;
}

/* The other threads, which may have been waiting, do not exist here. */
static void in_child(void)
{
    forking = false;
    inside = depth > 1;
    pthread_cond_init(&changed, NULL);
    pthread_mutex_unlock(&lock);
    depth--;
}

static void install(void)
{
    install_error = pthread_atfork(before_fork, in_parent, in_child);
}

int exti__fork_guard_install(void)
{
    pthread_once(&once, install);
    return install_error;
}

void exti__fork_guard_enter(void)
{
    if (depth++)
        return;
    pthread_mutex_lock(&lock);
    while (forking)
        pthread_cond_wait(&changed, &lock);
    inside++;
    pthread_mutex_unlock(&lock);
}

/* A signal handler that comes here meanwhile counts as nested: the lock may be this thread's. */
void exti__fork_guard_leave(void)
{
    if (depth == 1) {
        pthread_mutex_lock(&lock);
        if (--inside <= 1)
            pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    depth--;
}

bool exti__fork_guard_is_entered(void)
{
    return depth > 0;
}
