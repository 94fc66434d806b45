/* Signals of which nobody knows yet whose child has sent them: that child's start is under way on
 * another thread, which must not be waited for, as it may wait for what the signal has interrupted.
 * No lock: any thread, signal handlers included. */
#ifndef LOADER_TRACK_PARKED_SIGNALS_H
#define LOADER_TRACK_PARKED_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* `begun`: how many starts had begun when the signal came.  False: there is no room. */
bool exti__signal_park(const siginfo_t *info, uint64_t begun);

/* Hands each to the function, which returns false for one that is to stay: as long as one of the
 * starts goes on that had begun, which `starts` tells.  Who ends a start calls this then, and who
 * parks a signal after that, so one of them sees what the other has done. */
void exti__signals_each_parked(bool (*hand)(siginfo_t *info, uint64_t begun),
                               bool (*starts)(uint64_t begun));

/* In a forked child, which has no signals pending. */
void exti__signals_forget_parked(void);

#endif
