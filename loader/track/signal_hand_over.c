#define _GNU_SOURCE
#include "loader/track/signal_hand_over.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loader/track/moment.h"
#include "loader/track/process_stat.h"
#include "loader/track/signal_table.h"

#define SETTLE_MAX 20000000u /* ns */
#define LEADER_MAX 300000u   /* ns */

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

/* It blocks a signal while it handles it; else it may have other work. */
static bool leader_handles(pid_t pid, uint64_t since)
{
    struct exti_process_stat leader;
    const uint64_t waited = exti__now() - since;

    if (waited > SETTLE_MAX || !exti__process_stat(pid, &leader) || leader.state != 'R')
        return false;
    return waited < LEADER_MAX || (exti__process_blocked(pid) & exti__signals_dispatched());
}

/* The kernel gives what is sent to a process to its first thread, if that does not block it:
 * complete_signal in kernel/signal.c.  Until it has come to the dispatcher nothing else tells that
 * it has a signal. */
static void wait_for_leader(void)
{
    const uint64_t since = exti__now();
    const pid_t pid = getpid();

    if (syscall(SYS_gettid) == pid)
        return;
    while (leader_handles(pid, since))
        exti__rest();
}

static void wait_for_others(void)
{
    const uint64_t end = exti__now() + SETTLE_MAX;

    while (under_way > under_way_here && exti__now() < end)
        exti__rest();
}

void exti__signals_settle(void)
{
    const int error = errno;

    take_pending();
    wait_for_leader();
    wait_for_others();
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
