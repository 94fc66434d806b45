#define _GNU_SOURCE /* syscall */
#include "loader/track/context_end.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loader/process/fork_guard.h"
#include "loader/track/address_map.h"
#include "loader/track/calls.h"
#include "loader/track/context_threads.h"
#include "loader/track/exit_handlers.h"
#include "loader/track/fork_lock.h"
#include "loader/track/record_locks.h"
#include "loader/track/signal_dispatch.h"
#include "loader/track/signal_timers.h"

/* The last that has opened a context.  In a vfork child nothing else is looked at. */
static _Atomic(pid_t) process;

void exti__context_end_begin(struct exti_ctx *ctx)
{
    ctx->process = getpid();
    atomic_store(&process, ctx->process);
}

/* ---- whose end it is ---- */

struct exti_ctx *exti__context_at(uintptr_t call)
{
    const pid_t pid = getpid();
    struct exti_ctx *ctx;

    if (pid != atomic_load(&process))
        return NULL;
    /* A call that does not return may be the last of its function, and of its module. */
    ctx = exti__address_map_ctx(call - 1);
    if (!ctx && !exti__holds_fork_lock())
        ctx = (struct exti_ctx *)exti__ctx_threads_only();
    return ctx && ctx->process == pid ? ctx : NULL;
}

/* A thread that waits for ever must hold none of the locks of the library, or of the system's
 * loader: those are others' too. */
static bool may_stop_here(void)
{
    return !exti__call_innermost() && !exti__fork_guard_is_entered() && !exti__holds_fork_lock();
}

struct exti_ctx *exti__context_ending(uintptr_t call)
{
    struct exti_ctx *ctx = exti__context_at(call);
    uint32_t where = 0;

    if (!ctx || (ctx->flags & EXTI_CTX_PROCESS_ENDS) || !ctx->hooks.can_exit || !ctx->hooks.exit ||
        !may_stop_here())
        return NULL;
    if (exti__ctx_thread_is_own(ctx))
        where |= EXTI_EXIT_OWN_THREAD;
    if (exti__signals_handling())
        where |= EXTI_EXIT_IN_HANDLER;
    return ctx->hooks.can_exit(ctx->user, ctx, where) ? ctx : NULL;
}

/* ---- the end ---- */

static _Noreturn void stop_thread(void)
{
    sigset_t all;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    for (;;)
        pause();
}

static _Noreturn void end_context(struct exti_ctx *ctx, int status, bool cut_off)
{
    if (!atomic_exchange(&ctx->ended, true)) {
        atomic_store(&ctx->cut_off, cut_off);
        exti__ctx_count_ended(ctx);
        exti__signal_timers_stop(ctx);
        exti__signals_drop(ctx);
        exti__record_locks_forget(ctx);
    }
    ctx->hooks.exit(ctx->user, ctx, status & 0xff);
    stop_thread();
}

/* POSIX leaves open what a second thread that calls exit does. */
_Noreturn void exti__context_exit(struct exti_ctx *ctx, int status)
{
    const pid_t self = (pid_t)syscall(SYS_gettid);
    pid_t other = 0;

    if (!atomic_compare_exchange_strong(&ctx->exiting, &other, self) && other != self)
        stop_thread();
    exti__exit_handlers_run(ctx, status);
    fflush(NULL);
    end_context(ctx, status, false);
}

_Noreturn void exti__context_cut_off(struct exti_ctx *ctx, int status)
{
    end_context(ctx, status, true);
}
