/* The ends of a context's program: its own, by which it returns or exits, and from outside, as a
 * signal ends a process. */
#ifndef RUNTIME_ENDING_H
#define RUNTIME_ENDING_H

#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "runtime/pyapi.h"

struct pyrt_ending {
    const struct pyrt_api *py;
    atomic_int sig;        /* that the program is to end by; 0: none so far */
    _Atomic(pid_t) thread; /* the program's; 0: it does not run yet */
    atomic_bool ended;
    atomic_bool deaf; /* no signal reaches the program: its interpreter has no module for them */

    atomic_int way;  /* enum pyrt_way */
    int exit_status; /* by PYRT_EXITED */
    sem_t over;      /* posted once, after `way` has changed */
};

enum pyrt_way { PYRT_RUNS, PYRT_RETURNED, PYRT_EXITED };

/* To be called first, before the context is opened. */
void pyrt_ending_prepare(struct pyrt_ending *e);

/* The calling thread, which has the GIL and is the interpreter's main thread, will run the program.
 * Where that waits and whatever it runs, it gets SystemExit when it is asked to end.  -1 with an
 * exception set. */
int pyrt_ending_begin(struct pyrt_ending *e, const struct pyrt_api *py);

/* The program has ended, and its interpreter. */
void pyrt_ending_end(struct pyrt_ending *e);

/* The program's thread is about to return. */
void pyrt_ending_return(struct pyrt_ending *e);

/* The program ends by exit, _exit or the like on the calling thread, which then waits for ever: no
 * other runs Python code meanwhile. */
void pyrt_ending_exit(struct pyrt_ending *e, int status);

/* Waits for one of the two; true: the latter. */
bool pyrt_ending_wait(struct pyrt_ending *e);

/* Asks the program to end with the status 128 + sig.  If one was asked before and has not ended by
 * that, or cannot be asked, the process ends by the signal.  Any thread, signal handlers
 * included. */
void pyrt_ending_ask(struct pyrt_ending *e, int sig);

#endif
