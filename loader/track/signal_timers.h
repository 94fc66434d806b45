/* The timers of contexts: one of each kind, as a process has by setitimer(2), and those of
 * timer_create(2).  ELF systems.  Any thread, signal handlers included. */
#ifndef LOADER_TRACK_SIGNAL_TIMERS_H
#define LOADER_TRACK_SIGNAL_TIMERS_H

#include "loader/track/signal_table.h"

#if !defined(__APPLE__) && !defined(_WIN32)

#include <signal.h>
#include <sys/time.h>
#include <time.h>

/* Installs the fork handlers; to be called before any copy is loaded. */
void exti__signal_timers_survive_forks(void);

/* setitimer(2) and getitimer(2), whose `next` is NULL.  Timers of processor time count that of the
 * calling thread.  0 or an errno value. */
int exti__signal_timer(struct exti_ctx *ctx, struct exti_signals *s, int kind,
                       const struct itimerval *next, struct itimerval *old);

/* timer_create and timer_delete; -1 and errno if they fail.  Signals of the timer go to the context
 * alone, and to the thread that handles them. */
int exti__signal_timer_create(struct exti_ctx *ctx, struct exti_signals *s, clockid_t clock,
                              const struct sigevent *event, timer_t *out);
int exti__signal_timer_delete(timer_t timer);

/* Deletes all timers of the context. */
void exti__signal_timers_end(const struct exti_ctx *ctx);
/* The same, but frees nothing: for signal handlers. */
void exti__signal_timers_stop(const struct exti_ctx *ctx);

#else

static inline void exti__signal_timers_survive_forks(void)
{
}
static inline void exti__signal_timers_end(const struct exti_ctx *ctx)
{
    (void)ctx;
}

#endif
#endif
