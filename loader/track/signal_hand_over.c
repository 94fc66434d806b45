#define _GNU_SOURCE
#include "loader/track/signal_hand_over.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "loader/track/process_stat.h"

#define MOMENT 50000L         /* ns */
#define SETTLE_MAX 100000000L /* ns */
#define LEADER_MAX 1000000L   /* ns; it may have other work */

static atomic_uint under_way;
static _Thread_local unsigned under_way_here; /* of them, the calling thread's */
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

void exti__hand_over_begin(void)
{
    atomic_fetch_add(&under_way, 1);
    under_way_here++;
}

void exti__hand_over_end(void)
{
    under_way_here--;
    atomic_fetch_sub(&under_way, 1);
}

unsigned exti__hand_over_pause(void)
{
    const unsigned n = under_way_here;

    under_way_here = 0;
    atomic_fetch_sub(&under_way, n);
    return n;
}

void exti__hand_over_resume(unsigned n)
{
    atomic_fetch_add(&under_way, n);
    under_way_here = n;
}

/* The kernel gives what is pending for the process to the thread that unblocks it. */
static void take_pending(void)
{
    sigset_t all, old;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void wait_a_moment(void)
{
    const struct timespec moment = {0, MOMENT};

    nanosleep(&moment, NULL);
}

/* The kernel gives what is sent to a process to its first thread, if that does not block it, and
 * wakes it: complete_signal in kernel/signal.c.  Until it has come to the dispatcher nothing else
 * tells that it has a signal. */
static void wait_for_leader(void)
{
    const pid_t pid = getpid();
    struct exti_process_stat leader;

    if (syscall(SYS_gettid) == pid)
        return;
    for (long ns = 0; ns < LEADER_MAX; ns += MOMENT) {
        if (!exti__process_stat(pid, &leader) || leader.state != 'R')
            return;
        wait_a_moment();
    }
}

void exti__signals_settle(void)
{
    const int error = errno;

    take_pending();
    wait_for_leader();
    for (long ns = 0; under_way > under_way_here && ns < SETTLE_MAX; ns += MOMENT)
        wait_a_moment();
    syscall(SYS_gettid); /* What was sent to the thread arrives at the end of a system call. */
    errno = error;
}

/* POSIX fork: the child has no signals pending, and one thread. */
static void begin_child(void)
{
    atomic_store(&under_way, under_way_here);
}

static void install_fork_handler(void)
{
    pthread_atfork(NULL, NULL, begin_child);
}

void exti__hand_overs_survive_forks(void)
{
    pthread_once(&fork_once, install_fork_handler);
}
