/* alarm, setitimer and getitimer: a process has one timer of each kind; here each context has.
 * timer_create: a context's timers send it their signals alone.
 * ELF systems. */
#ifndef LOADER_INTERPOSE_TIMER_CALLS_H
#define LOADER_INTERPOSE_TIMER_CALLS_H

#include <stddef.h>

#if !defined(__APPLE__) && !defined(_WIN32)

/* The function that a copy's reference to `symbol` is bound to, or NULL. */
void *exti__timer_call(const char *symbol);

#else

static inline void *exti__timer_call(const char *symbol)
{
    (void)symbol;
    return NULL;
}

#endif
#endif
