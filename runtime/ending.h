/* Ends a context's program from outside, as a signal ends a process. */
#ifndef RUNTIME_ENDING_H
#define RUNTIME_ENDING_H

#include <stdatomic.h>
#include <sys/types.h>

#include "runtime/pyapi.h"

struct pyrt_ending {
    const struct pyrt_api *py;
    atomic_int sig;        /* that the program is to end by; 0: none so far */
    _Atomic(pid_t) thread; /* the program's; 0: it does not run yet */
    atomic_bool ended;
    atomic_bool deaf; /* no signal reaches the program: its interpreter has no module for them */
};

/* The calling thread, which has the GIL and is the interpreter's main thread, will run the program.
 * Where that waits and whatever it runs, it gets SystemExit when it is asked to end.  -1 with an
 * exception set. */
int pyrt_ending_begin(struct pyrt_ending *e, const struct pyrt_api *py);

/* The program has ended, and its interpreter. */
void pyrt_ending_end(struct pyrt_ending *e);

/* Asks the program to end with the status 128 + sig.  If one was asked before and has not ended by
 * that, or cannot be asked, the process ends by the signal.  Any thread, signal handlers
 * included. */
void pyrt_ending_ask(struct pyrt_ending *e, int sig);

#endif
