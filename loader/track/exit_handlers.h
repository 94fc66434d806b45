/* The functions that copies register for the end of their program: by __cxa_atexit, which the
 * destructors of C++ objects are registered by, by on_exit and by at_quick_exit.  Those of one
 * context can run alone.  ELF systems.  Any thread. */
#ifndef LOADER_TRACK_EXIT_HANDLERS_H
#define LOADER_TRACK_EXIT_HANDLERS_H

#include <stdbool.h>

#include "loader/track/module.h"

#if !defined(__APPLE__) && !defined(_WIN32)

/* Installs the fork handlers; 0 or an errno value.  To be called before any copy is loaded. */
int exti__exit_handlers_survive_forks(void);

/* What they take, for a copy of the module.  0, or -1 without memory.
 * `library`: the copy's __dso_handle, when whose library is unloaded the function is called. */
int exti__at_exit(const struct exti_module *m, void (*function)(void *), void *arg, void *library);
int exti__on_exit(const struct exti_module *m, void (*function)(int, void *), void *arg);
int exti__at_quick_exit(const struct exti_module *m, void (*function)(void));

/* Runs the context's functions, newest first, with those that these register; each runs once. */
void exti__exit_handlers_run(const struct exti_ctx *ctx, int status);
void exti__quick_exit_handlers_run(const struct exti_ctx *ctx);

/* The module will be unloaded: runs its functions of on_exit, with the status 0, as the C library
 * runs those of atexit, and forgets those of at_quick_exit. */
void exti__exit_handlers_unload(const struct exti_module *m);

/* To be called before the context is freed.  What it has left runs when the process ends, if it is
 * to run at all. */
void exti__exit_handlers_forget(const struct exti_ctx *ctx, bool run);

#else

static inline int exti__exit_handlers_survive_forks(void)
{
    return 0;
}
static inline void exti__exit_handlers_run(const struct exti_ctx *ctx, int status)
{
    (void)ctx, (void)status;
}
static inline void exti__exit_handlers_unload(const struct exti_module *m)
{
    (void)m;
}
static inline void exti__exit_handlers_forget(const struct exti_ctx *ctx, bool run)
{
    (void)ctx, (void)run;
}

#endif
#endif
