/* Locks of libraries that contexts share, at forks.  A child has the locks as the fork found them:
 * one that a thread of another context holds stays locked in it for good.  In a program with one
 * interpreter the GIL keeps most forks and such calls apart.  So a fork waits until no other thread
 * holds one, and threads wait with their next one until it is done; neither waits for long, as they
 * may depend on each other.  ELF systems.  Any thread; signal handlers, too. */
#ifndef LOADER_TRACK_LIBRARY_LOCKS_H
#define LOADER_TRACK_LIBRARY_LOCKS_H

#include <stddef.h>

#if !defined(__APPLE__) && !defined(_WIN32)

/* Installs the fork handlers; 0 or an errno value.  To be called after those of locks that such
 * calls may take (getenv's), and before those of exti__fork_guard_install: what runs while a
 * library is opened may take locks of others. */
int exti__library_locks_survive_forks(void);

/* Where calls of `symbol`, a function of mutexes, read-write locks or condition variables, of a
 * shared library lead, or NULL. */
void *exti__library_lock_call(const char *symbol);

/* How many threads hold such a lock, or are about to. */
unsigned exti__library_locks_held(void);

#else

static inline int exti__library_locks_survive_forks(void)
{
    return 0;
}

#endif
#endif
