/* The locks that a fork takes, so that the child finds them free.  It takes them in an order of its
 * own: a signal handler, which may call dladdr for a backtrace, must not wait for one of them where
 * it has interrupted a thread that holds another. */
#ifndef LOADER_TRACK_FORK_LOCK_H
#define LOADER_TRACK_FORK_LOCK_H

#include <pthread.h>
#include <stdbool.h>

void exti__fork_lock(pthread_mutex_t *lock);
void exti__fork_unlock(pthread_mutex_t *lock);

/* Around the use of such a lock of another kind. */
void exti__fork_lock_enter(void);
void exti__fork_lock_leave(void);

/* The calling thread holds one, or is about to. */
bool exti__holds_fork_lock(void);

#endif
