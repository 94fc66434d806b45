/* The timers of contexts that send signals: one of each kind, as a process has by setitimer(2).
 * ELF systems.  Any thread, signal handlers included. */
#ifndef LOADER_TRACK_SIGNAL_TIMERS_H
#define LOADER_TRACK_SIGNAL_TIMERS_H

#include "loader/track/signal_table.h"

#if !defined(__APPLE__) && !defined(_WIN32)

#include <sys/time.h>

/* Installs the fork handlers; to be called before any copy is loaded. */
void exti__signal_timers_survive_forks(void);

/* setitimer(2) and getitimer(2), whose `next` is NULL.  Timers of processor time count that of the
 * calling thread.  0 or an errno value. */
int exti__signal_timer(struct exti_ctx *ctx, struct exti_signals *s, int kind,
                       const struct itimerval *next, struct itimerval *old);

void exti__signal_timers_end(const struct exti_ctx *ctx);

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
