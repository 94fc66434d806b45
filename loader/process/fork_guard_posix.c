#include "loader/process/fork_guard.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned inside;  /* threads that open or close a library */
static unsigned mapping; /* those whose copies' code is not there yet */
static bool forking, ending;
static atomic_uint forks;
static pthread_t ender; /* who ends the process */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int install_error;

static _Thread_local volatile unsigned depth; /* of this thread's calls, and its forks */
static _Thread_local unsigned own_mappings;

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

    forks++;
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
    ending = false;
    inside = depth > 1;
    mapping = own_mappings > 0;
    pthread_cond_init(&changed, NULL);
    pthread_mutex_unlock(&lock);
    depth--;
}

/* Handlers of a program that come later may wait for threads that begin to map a copy, so these do
 * not wait for ever, either.  In a signal handler the lock may be this thread's. */
static void before_end(void)
{
    const struct timespec end = exti__fork_patience_end();
    int rc = 0;

    if (depth || own_mappings)
        return;
    pthread_mutex_lock(&lock);
    ending = true;
    ender = pthread_self();
    while (mapping && !rc)
        rc = pthread_cond_timedwait(&changed, &lock, &end);
    pthread_mutex_unlock(&lock);
}

static void install(void)
{
    install_error = pthread_atfork(before_fork, in_parent, in_child);
    if (!install_error && atexit(before_end))
        install_error = ENOMEM;
}

int exti__fork_guard_install(void)
{
    pthread_once(&once, install);
    return install_error;
}

unsigned exti__forks_begun(void)
{
    return forks;
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

void exti__fork_guard_begin_mapping(void)
{
    const struct timespec end = exti__fork_patience_end();
    int rc = 0;

    if (!own_mappings++) {
        pthread_mutex_lock(&lock);
        while (ending && !pthread_equal(ender, pthread_self()) && !rc)
            rc = pthread_cond_timedwait(&changed, &lock, &end);
        mapping++;
        pthread_mutex_unlock(&lock);
    }
    exti__fork_guard_enter();
}

void exti__fork_guard_end_mapping(void)
{
    exti__fork_guard_leave();
    if (--own_mappings)
        return;
    pthread_mutex_lock(&lock);
    mapping--;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

bool exti__fork_guard_is_entered(void)
{
    return depth > 0;
}
