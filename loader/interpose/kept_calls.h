/* The functions by which copies give the C library what it keeps until the process ends: buffers of
 * streams, functions of streams and of printf, the name in the system's log.  ELF systems. */
#ifndef LOADER_INTERPOSE_KEPT_CALLS_H
#define LOADER_INTERPOSE_KEPT_CALLS_H

#include <stddef.h>

#if !defined(__APPLE__) && !defined(_WIN32)

/* The function that a copy's reference to `symbol` is bound to, or NULL. */
void *exti__kept_call(const char *symbol);

#else

static inline void *exti__kept_call(const char *symbol)
{
    (void)symbol;
    return NULL;
}

#endif
#endif
