/* dl_iterate_phdr for copies.  ELF systems. */
#ifndef LOADER_INTERPOSE_ITERATE_PHDR_H
#define LOADER_INTERPOSE_ITERATE_PHDR_H

#include <stddef.h>

struct exti_ctx;

#if !defined(__APPLE__) && !defined(_WIN32)

/* The function that a copy's reference to `symbol` is bound to, or NULL. */
void *exti__iterate_phdr_call(const char *symbol);

/* The same for a copy of this context that looks `symbol` up by dlsym.  The result works for the
 * context even when it is called through a library that is no copy, as Python's ctypes does. */
void *exti__iterate_phdr_for(const struct exti_ctx *ctx, const char *symbol);

/* To be called before the context is freed. */
void exti__iterate_phdr_forget(const struct exti_ctx *ctx);

#else

static inline void *exti__iterate_phdr_call(const char *symbol)
{
    (void)symbol;
    return NULL;
}
static inline void *exti__iterate_phdr_for(const struct exti_ctx *ctx, const char *symbol)
{
    (void)ctx, (void)symbol;
    return NULL;
}
static inline void exti__iterate_phdr_forget(const struct exti_ctx *ctx)
{
    (void)ctx;
}

#endif
#endif
