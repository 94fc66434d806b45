/* The functions that run shell commands as copies call them, in the context's environment.  ELF
 * systems. */
#ifndef LOADER_INTERPOSE_SHELL_CALLS_H
#define LOADER_INTERPOSE_SHELL_CALLS_H

#include "loader/track/context.h"

#if !defined(__APPLE__) && !defined(_WIN32)

/* Installs the fork handlers; 0 or an errno value.  To be called before any copy is loaded. */
int exti__shell_calls_survive_forks(void);

/* The function for `symbol`, or NULL. */
void *exti__shell_call(const struct exti_ctx *ctx, const char *symbol);

#else

static inline int exti__shell_calls_survive_forks(void)
{
    return 0;
}
static inline void *exti__shell_call(const struct exti_ctx *ctx, const char *symbol)
{
    (void)ctx, (void)symbol;
    return NULL;
}

#endif
#endif
