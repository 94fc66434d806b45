/* Signal actions, signals that a process sends itself, waiting for signals, and timers: of copies
 * they are their context's.  ELF systems. */
#ifndef LOADER_INTERPOSE_SIGNAL_CALLS_H
#define LOADER_INTERPOSE_SIGNAL_CALLS_H

#include <stddef.h>

#if !defined(__APPLE__) && !defined(_WIN32)

/* The function that a copy's reference to `symbol` is bound to, or NULL. */
void *exti__signal_call(const char *symbol);

#else

static inline void *exti__signal_call(const char *symbol)
{
    (void)symbol;
    return NULL;
}

#endif
#endif
