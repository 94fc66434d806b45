/* Forks wait until no thread opens or closes a library: the child has the system loader's tables as
 * the fork found them, and glibc ends a child that opens a library with tables that are half
 * changed ("r_state == RT_CONSISTENT").  POSIX: Windows has no forks, nor copies whose code comes
 * later. */
#ifndef LOADER_PROCESS_FORK_GUARD_H
#define LOADER_PROCESS_FORK_GUARD_H

#include <stdbool.h>
#include <time.h>

/* Installs the handlers of forks and of the end once; 0 or an errno value.  To be called after
 * those of locks that finalisers take: a fork runs the handlers in reverse order, and must not hold
 * such a lock while it waits here. */
int exti__fork_guard_install(void);

/* How many forks have begun in this process, and in those that it was forked from. */
#if !defined(_WIN32)
unsigned exti__forks_begun(void);
#else
static inline unsigned exti__forks_begun(void)
{
    return 0;
}
#endif

/* Around each call that changes what is loaded.  May be nested.  Waits while another thread
 * forks. */
void exti__fork_guard_enter(void);
void exti__fork_guard_leave(void);

/* From before a copy is mapped until its code is there.  Forks wait as above, and so does the end
 * of the process, as ld.so would call destructors whose code is not there.  Waits while another
 * thread ends the process. */
#if !defined(_WIN32)
void exti__fork_guard_begin_mapping(void);
void exti__fork_guard_end_mapping(void);
#else
static inline void exti__fork_guard_begin_mapping(void)
{
}

static inline void exti__fork_guard_end_mapping(void)
{
}
#endif

/* The calling thread is in such a call, or forks. */
bool exti__fork_guard_is_entered(void);

/* Until when a fork that begins now waits for other threads: they may wait for the one that
 * forks. */
struct timespec exti__fork_patience_end(void);

#endif
