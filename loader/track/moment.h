/* Moments, for what runs in signal handlers.  POSIX. */
#ifndef LOADER_TRACK_MOMENT_H
#define LOADER_TRACK_MOMENT_H

#include <stdint.h>

uint64_t exti__now(void); /* ns, of CLOCK_MONOTONIC; never 0 */

/* Waits a moment.  A signal ends it.  No cancellation point; may change errno. */
void exti__rest(void);

#endif
