#include "loader/track/fork_lock.h"

#include <signal.h>

static _Thread_local volatile sig_atomic_t held;

void exti__fork_lock_enter(void)
{
    held++;
}

void exti__fork_lock_leave(void)
{
    held--;
}

bool exti__holds_fork_lock(void)
{
    return held > 0;
}

void exti__fork_lock(pthread_mutex_t *lock)
{
    exti__fork_lock_enter();
    pthread_mutex_lock(lock);
}

void exti__fork_unlock(pthread_mutex_t *lock)
{
    pthread_mutex_unlock(lock);
    exti__fork_lock_leave();
}
