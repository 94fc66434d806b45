/* One action of a signal, which handlers read while it is written.  POSIX. */
#ifndef LOADER_TRACK_SIGNAL_CELL_H
#define LOADER_TRACK_SIGNAL_CELL_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* An action as handlers need it. */
struct exti_signal_action {
    void (*handler)(int); /* SIG_DFL, SIG_IGN or a function */
    unsigned flags;       /* SA_* */
    pid_t thread;         /* the one that set it, which is to handle the signal */
    bool waited;          /* that thread takes the signal by sigwait(3) or the like */
    uint64_t left;        /* when it was a function last, by exti__now; 0: never, or it is one */
};

/* One thread writes at a time; any reads, a signal handler too. */
struct exti_signal_cell {
    atomic_uint version; /* odd while it is written */
    _Atomic(uintptr_t) handler;
    atomic_uint flags;
    atomic_int thread;
    atomic_bool waited;
    _Atomic uint64_t left;
};

void exti__signal_cell_write(struct exti_signal_cell *c, const struct sigaction *a, pid_t thread,
                             bool waited);
struct exti_signal_action exti__signal_cell_read(const struct exti_signal_cell *c);

/* The calling thread, as cells name it. */
pid_t exti__signal_thread(void);

/* Whether it is neither SIG_DFL nor SIG_IGN. */
bool exti__signal_is_function(void (*handler)(int));

/* Whether the default action of the signal is to end the process: signal(7). */
bool exti__signal_ends_process(int sig);

/* Whether children of who has this action for SIGCHLD are gone once they have ended: sigaction(2),
 * SA_NOCLDWAIT. */
bool exti__signal_drops_children(const struct exti_signal_action *a);

#endif
