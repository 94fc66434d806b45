/* The fork handlers that copies have registered.  A fork runs those of the context that forks, and
 * the program's, but no other context's: these may wait for threads that do not exist in the child,
 * or for another interpreter's lock.  ELF systems.  Any thread. */
#ifndef LOADER_TRACK_FORK_HANDLERS_H
#define LOADER_TRACK_FORK_HANDLERS_H

#include "loader/track/module.h"

#if !defined(__APPLE__) && !defined(_WIN32)

/* Installs the handler that runs them; 0 or an errno value.  To be called before any copy is
 * loaded, and after the handlers of locks that a copy's fork handlers may need. */
int exti__fork_handlers_install(void);

/* Keeps the list whole over a fork; 0 or an errno value.  To be called before the fork guard is
 * installed, for which a fork waits without the list's lock. */
int exti__fork_handlers_survive_forks(void);

/* What pthread_atfork(3) takes, for the copy in which `inside` lies.  0 or ENOMEM. */
int exti__fork_handlers_add(const struct exti_module *m, void (*prepare)(void),
                            void (*parent)(void), void (*child)(void));

/* Forgets the handlers of the module `m`, which will be unloaded. */
void exti__fork_handlers_drop(const struct exti_module *m);

/* Until the next call, forks of the calling thread are the context's.  Returns what they were
 * before: NULL if it is not known whose they are. */
const struct exti_ctx *exti__fork_handlers_for(const struct exti_ctx *ctx);
const struct exti_ctx *exti__fork_handlers_ctx(void); /* what they are now */

#else

static inline int exti__fork_handlers_install(void)
{
    return 0;
}
static inline int exti__fork_handlers_survive_forks(void)
{
    return 0;
}
static inline void exti__fork_handlers_drop(const struct exti_module *m)
{
    (void)m;
}

#endif
#endif
