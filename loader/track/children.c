#define _GNU_SOURCE
#include "loader/track/children.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "loader/track/process_stat.h"
#include "loader/track/signal_hand_over.h"

struct child {
    const struct exti_ctx *ctx;
    pid_t pid;
};

/* Guards the table.  Signals are blocked meanwhile: a handler of SIGCHLD comes here.  Innermost. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static int fork_error;
static struct child *children;
static size_t count, room;

static atomic_uint starts; /* by all threads: of children whose numbers are not known yet */
static _Thread_local struct {
    const struct exti_ctx *ctx; /* of the last */
    unsigned n;                 /* of `starts` */
} starting;

static void lock_children(sigset_t *signals)
{
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, signals);
    pthread_mutex_lock(&lock);
}

static void unlock_children(const sigset_t *signals)
{
    pthread_mutex_unlock(&lock);
    pthread_sigmask(SIG_SETMASK, signals, NULL);
}

static bool grow(void)
{
    const size_t larger = room ? room * 2 : 64;
    struct child *grown = exti__realloc(children, larger * sizeof *grown);

    if (!grown)
        return false;
    children = grown;
    room = larger;
    return true;
}

/* The lock is held. */
static const struct child *find(pid_t pid)
{
    for (size_t i = 0; i < count; i++)
        if (children[i].pid == pid)
            return &children[i];
    return NULL;
}

void exti__child_add(const struct exti_ctx *ctx, pid_t pid)
{
    sigset_t signals;

    lock_children(&signals);
    if (!find(pid) && (count < room || grow()))
        children[count++] = (struct child){ctx, pid};
    unlock_children(&signals);
}

void exti__child_starts(const struct exti_ctx *ctx)
{
    if (!ctx)
        return;
    starting.ctx = ctx;
    atomic_fetch_add(&starts, 1);
    starting.n++;
}

void exti__child_started(const struct exti_ctx *ctx, pid_t pid)
{
    if (!ctx)
        return;
    if (pid > 0)
        exti__child_add(ctx, pid);
    starting.n--;
    atomic_fetch_sub(&starts, 1);
}

void exti__child_ended(pid_t pid)
{
    sigset_t signals;

    exti__signals_settle(); /* while the dispatcher can still find out whose it is */
    lock_children(&signals);
    for (size_t i = 0; i < count;)
        if (children[i].pid == pid)
            children[i] = children[--count];
        else
            i++;
    unlock_children(&signals);
}

size_t exti__children_of(const struct exti_ctx *ctx, pid_t *out, size_t n)
{
    size_t found = 0;
    sigset_t signals;

    lock_children(&signals);
    for (size_t i = 0; i < count; i++)
        if (children[i].ctx == ctx && found++ < n)
            out[found - 1] = children[i].pid;
    unlock_children(&signals);
    return found;
}

void exti__children_forget(const struct exti_ctx *ctx)
{
    sigset_t signals;

    lock_children(&signals);
    for (size_t i = 0; i < count;)
        if (children[i].ctx == ctx)
            children[i] = children[--count];
        else
            i++;
    unlock_children(&signals);
}

/* ---- senders of signals ---- */

/* Each is the child of the next, and so on. */
#define GENERATIONS 16

static pid_t parent_of(pid_t pid)
{
    struct exti_process_stat stat;

    return exti__process_stat(pid, &stat) ? stat.parent : 0;
}

static struct exti_signals *signals_of(pid_t pid)
{
    const struct child *found;
    struct exti_signals *s = NULL;
    sigset_t signals;

    lock_children(&signals);
    found = find(pid);
    if (found)
        s = atomic_load(&found->ctx->signals);
    unlock_children(&signals);
    return s;
}

/* Of a child that may be one whose start is under way: those of other threads are waited for, for
 * a tenth of a second at most, and what is left is this thread's, which the signal has
 * interrupted. */
static struct exti_signals *signals_of_started(pid_t pid)
{
    const struct timespec moment = {0, 50000};
    struct exti_signals *s;

    for (int i = 0; i < 2000 && starts > starting.n; i++)
        nanosleep(&moment, NULL);
    s = signals_of(pid);
    return s || !starting.n ? s : atomic_load(&starting.ctx->signals);
}

struct exti_signals *exti__child_signals(pid_t pid)
{
    struct exti_signals *s = NULL;
    const pid_t self = getpid();

    for (int i = 0; i < GENERATIONS && pid > 1 && pid != self && !s; i++) {
        const pid_t child = pid;

        s = signals_of(child);
        pid = s ? child : parent_of(child);
        if (pid == self)
            s = signals_of_started(child);
    }
    return s;
}

/* ---- forks ---- */

static sigset_t fork_signals; /* of the thread that forks, which holds the lock */

static void begin_fork(void)
{
    sigset_t signals;

    lock_children(&signals);
    fork_signals = signals;
}

static void end_fork(void)
{
    const sigset_t signals = fork_signals;

    unlock_children(&signals);
}

/* They are the parent's. */
static void begin_child(void)
{
    count = 0;
    starts = starting.n = 0;
    end_fork();
}

static void install_fork_handlers(void)
{
    fork_error = pthread_atfork(begin_fork, end_fork, begin_child);
}

int exti__children_survive_forks(void)
{
    pthread_once(&fork_once, install_fork_handlers);
    return fork_error;
}
