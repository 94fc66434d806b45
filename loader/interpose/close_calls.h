/* The functions that close descriptors, for copies: a context that closes one drops its record
 * locks on the file.  ELF systems. */
#ifndef LOADER_INTERPOSE_CLOSE_CALLS_H
#define LOADER_INTERPOSE_CLOSE_CALLS_H

#include <stddef.h>

#if !defined(__APPLE__) && !defined(_WIN32)

/* The function that a copy's reference to `symbol` is bound to, or NULL. */
void *exti__close_call(const char *symbol);

#else

static inline void *exti__close_call(const char *symbol)
{
    (void)symbol;
    return NULL;
}

#endif
#endif
