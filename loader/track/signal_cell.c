#define _GNU_SOURCE /* syscall */
#include "loader/track/signal_cell.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "loader/track/moment.h"

static uint64_t left_at(const struct exti_signal_cell *c, const struct sigaction *next)
{
    const uintptr_t now = atomic_load_explicit(&c->handler, memory_order_relaxed);

    if (exti__signal_is_function(next->sa_handler))
        return 0;
    return exti__signal_is_function((void (*)(int))now)
               ? exti__now()
               : atomic_load_explicit(&c->left, memory_order_relaxed);
}

void exti__signal_cell_write(struct exti_signal_cell *c, const struct sigaction *a, pid_t thread,
                             bool waited)
{
    const unsigned version = atomic_load_explicit(&c->version, memory_order_relaxed);
    const uint64_t left = left_at(c, a);

    atomic_store_explicit(&c->version, version + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&c->handler, (uintptr_t)a->sa_handler, memory_order_relaxed);
    atomic_store_explicit(&c->flags, (unsigned)a->sa_flags, memory_order_relaxed);
    atomic_store_explicit(&c->thread, thread, memory_order_relaxed);
    atomic_store_explicit(&c->waited, waited, memory_order_relaxed);
    atomic_store_explicit(&c->left, left, memory_order_relaxed);
    atomic_store_explicit(&c->version, version + 2, memory_order_release);
}

struct exti_signal_action exti__signal_cell_read(const struct exti_signal_cell *c)
{
    struct exti_signal_action a;
    unsigned before, after;

    do {
        before = atomic_load_explicit(&c->version, memory_order_acquire);
        a.handler = (void (*)(int))atomic_load_explicit(&c->handler, memory_order_relaxed);
        a.flags = atomic_load_explicit(&c->flags, memory_order_relaxed);
        a.thread = atomic_load_explicit(&c->thread, memory_order_relaxed);
        a.waited = atomic_load_explicit(&c->waited, memory_order_relaxed);
        a.left = atomic_load_explicit(&c->left, memory_order_relaxed);
        atomic_thread_fence(memory_order_acquire);
        after = atomic_load_explicit(&c->version, memory_order_relaxed);
    } while (before != after || (before & 1));
    return a;
}

bool exti__signal_is_function(void (*handler)(int))
{
    return handler != SIG_DFL && handler != SIG_IGN;
}

bool exti__signal_ends_process(int sig)
{
    switch (sig) {
    case SIGCHLD:
    case SIGCONT:
    case SIGURG:
    case SIGWINCH:
    case SIGSTOP:
    case SIGTSTP:
    case SIGTTIN:
    case SIGTTOU:
        return false;
    default:
        return true;
    }
}

pid_t exti__signal_thread(void)
{
    return (pid_t)syscall(SYS_gettid);
}

bool exti__signal_drops_children(const struct exti_signal_action *a)
{
    return a->handler == SIG_IGN || (a->flags & SA_NOCLDWAIT);
}
