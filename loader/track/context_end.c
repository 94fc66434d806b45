#define _GNU_SOURCE /* syscall */
#include "loader/track/context_end.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "loader/process/fork_guard.h"
#include "loader/track/calls.h"
#include "loader/track/context_keys.h"
#include "loader/track/context_threads.h"
#include "loader/track/exit_handlers.h"
#include "loader/track/fork_lock.h"
#include "loader/track/record_locks.h"
#include "loader/track/signal_dispatch.h"
#include "loader/track/signal_timers.h"
#include "loader/track/streams.h"
#include "loader/track/surroundings.h"
#include "loader/track/thread_objects.h"

/* ---- whose end it is ---- */

bool exti__context_call_begin(struct exti_call *c, uintptr_t call)
{
    struct exti_module m;

    *c = (struct exti_call){0};
    if (!exti__ctx_process_is_ours())
        return false;
    /* A call that does not return may be the last of its function, and of its module. */
    if (!exti__call_begin_note(c, call - 1, &m) &&
        !exti__call_begin_in(c, exti__surroundings_entered()))
        return false;
    if (exti__ctx_is_ours(c->ctx))
        return true;
    exti__call_end(c);
    return false;
}

/* A thread that waits for ever must hold none of the locks of the library, or of the system's
 * loader: those are others' too. */
static bool may_stop_here(void)
{
    return !exti__call_innermost() && !exti__fork_guard_is_entered() && !exti__holds_fork_lock();
}

static _Noreturn void stop_thread(void)
{
    sigset_t all;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    for (;;)
        pause();
}

/* ---- what is left of closed ones ---- */

/* Where a module is mapped for ever. */
struct remnant {
    uintptr_t lo, hi;
    struct remnant *older;
};

static struct remnant *_Atomic remnants;
static struct exti_ctx *_Atomic kept;

void exti__context_leave_behind(const struct exti_module *m)
{
    struct remnant *r = exti__alloc(sizeof *r);

    if (!r)
        return; /* the process ends by them, as without this */
    *r = (struct remnant){m->layout.lo, m->layout.hi, atomic_load(&remnants)};
    while (!atomic_compare_exchange_weak(&remnants, &r->older, r))
        ;
}

void exti__context_keep(struct exti_ctx *ctx)
{
    ctx->older = atomic_load(&kept);
    while (!atomic_compare_exchange_weak(&kept, &ctx->older, ctx))
        ;
}

static bool is_left_behind(uintptr_t address)
{
    const struct remnant *r = atomic_load(&remnants);

    while (r && (address < r->lo || address >= r->hi))
        r = r->older;
    return r != NULL;
}

/* ---- whether a context ends ---- */

static bool is_to_end_alone(struct exti_ctx *ctx)
{
    uint32_t where = 0;
    bool here;

    if ((ctx->flags & EXTI_CTX_PROCESS_ENDS) || !ctx->hooks.can_exit || !ctx->hooks.exit)
        return false;
    if (exti__calls_are_stopped(ctx, &here) && here)
        return false;
    if (exti__ctx_thread_is_own(ctx))
        where |= EXTI_EXIT_OWN_THREAD;
    if (exti__signals_handling())
        where |= EXTI_EXIT_IN_HANDLER;
    return ctx->hooks.can_exit(ctx->user, ctx, where) != 0;
}

struct exti_ctx *exti__context_ending(uintptr_t call)
{
    struct exti_ctx *ctx = NULL;
    struct exti_call c;

    if (!may_stop_here())
        return NULL;
    if (!exti__context_call_begin(&c, call)) {
        if (exti__ctx_process_is_ours() &&
            (is_left_behind(call - 1) || exti__surroundings_are_over()))
            stop_thread();
        return NULL;
    }
    if (is_to_end_alone(c.ctx)) {
        ctx = c.ctx;
        atomic_fetch_add(&ctx->leaving, 1);
    }
    exti__call_end(&c);
    return ctx;
}

void exti__context_goes_on(struct exti_ctx *ctx)
{
    atomic_fetch_sub(&ctx->leaving, 1);
}

/* ---- the end ---- */

void exti__context_hold(struct exti_call *c, struct exti_ctx *ctx)
{
    struct exti_ctx *_Atomic place = ctx;
    bool here;

    exti__call_begin_in(c, &place);
    if (!exti__calls_are_stopped(ctx, &here) && !atomic_load(&ctx->closed))
        return;
    exti__call_end(c);
    stop_thread();
}

/* Of several threads that end it the first says how. */
static void take_all(struct exti_ctx *ctx, int status, bool cut_off)
{
    int none = 0;

    if (!atomic_compare_exchange_strong(&ctx->ended_by, &none, (status & 0xff) + 1))
        return;
    atomic_store(&ctx->ended, true);
    atomic_store(&ctx->cut_off, cut_off);
    exti__ctx_count_ended(ctx);
    exti__signal_timers_stop(ctx);
    exti__signals_drop(ctx);
    exti__record_locks_forget(ctx);
    exti__thread_objects_drop(ctx);
}

static _Noreturn void end_context(struct exti_ctx *ctx, int status, bool cut_off)
{
    struct exti_call c;

    exti__context_hold(&c, ctx);
    take_all(ctx, status, cut_off);
    exti__ctx_keys_leave(ctx);
    exti__call_end(&c);
    ctx->hooks.exit(ctx->user, ctx, atomic_load(&ctx->ended_by) - 1);
    stop_thread();
}

static void await_end(const struct exti_ctx *ctx)
{
    const struct timespec moment = {0, 1000000};

    while (!atomic_load(&ctx->ended) && !atomic_load(&ctx->closed))
        nanosleep(&moment, NULL);
}

/* As in glibc, a second thread that calls exit waits for the first. */
_Noreturn void exti__context_exit(struct exti_ctx *ctx, int status)
{
    const pid_t self = (pid_t)syscall(SYS_gettid);
    pid_t other = 0;

    if (!atomic_compare_exchange_strong(&ctx->exiting, &other, self) && other != self) {
        await_end(ctx);
        end_context(ctx, status, ctx->cut_off);
    }
    exti__thread_objects_exit(ctx);
    exti__exit_handlers_run(ctx, status);
    exti__streams_flush();
    end_context(ctx, status, false);
}

_Noreturn void exti__context_cut_off(struct exti_ctx *ctx, int status)
{
    end_context(ctx, status, true);
}
