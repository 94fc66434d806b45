/* Takes the signals of the process to the contexts.  One that comes from outside is handled by
 * the program, if it has set a handler, and then by each context that has, on the thread that
 * set it, as if each were a process of a group.  What a context sends to itself goes to no
 * other.  A fault is its own context's, then the program's.  ELF systems.  Any thread, signal
 * handlers included. */
#ifndef LOADER_TRACK_SIGNAL_DISPATCH_H
#define LOADER_TRACK_SIGNAL_DISPATCH_H

#include "loader/track/signal_table.h"

#if !defined(__APPLE__) && !defined(_WIN32)

/* To be called before any copy is loaded. */
void exti__signals_begin(void);

/* The context sends its own process a signal.  `thread` is to handle it; 0: the one that set the
 * handler.  *info says who sends what.  0 or an errno value. */
int exti__signal_send(struct exti_signals *s, pid_t thread, siginfo_t *info);

/* A child has become known, which may have sent signals: they are sent on.  For a thread that
 * blocks signals. */
void exti__signals_unpark(void);

/* What pthread_sigqueue(3) is to send so that the thread takes the signal for the context; false:
 * the action is no function's. */
bool exti__signal_send_value(const struct exti_signals *s, int sig, union sigval *out);

/* The value of a timer of the context's for setitimer(2) and alarm(2). */
union sigval exti__signal_timer_value(const struct exti_signals *s);

/* Whether the calling thread is in a handler that the dispatcher has called; maybe also true on one
 * that has left such a handler by siglongjmp. */
bool exti__signals_handling(void);

/* The calling thread has taken the signal by waiting for it, in code of the context or, if that is
 * NULL, of another library.  Gives the other contexts what comes from outside, and takes off *info
 * what only the dispatcher is to see. */
void exti__signal_taken(const struct exti_signals *waiter, siginfo_t *info);

#else

static inline void exti__signals_begin(void)
{
}

#endif
#endif
