#include "loader/track/calls.h"

#include "loader/process/fork_guard.h"
#include "loader/track/address_map.h"
#include "loader/track/fork_lock.h"

/* Guards `calls`, `busy`, `counted`, `torn`, `closing` and `closer` of all contexts, and the forks
 * in flight.  The address map's lock is taken under it, and no other. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER; /* a call or a fork has ended, or rests */

static unsigned forks; /* between this process and the first */

static _Thread_local struct exti_call *innermost;

static void lock_calls(void)
{
    exti__fork_lock(&lock);
}

static void unlock_calls(void)
{
    exti__fork_unlock(&lock);
}

/* The calls of a parent's threads count no more; what they were changing stays as it was.  The lock
 * is held, here and below. */
static void count_calls(struct exti_ctx *ctx)
{
    if (ctx->counted == forks)
        return;
    ctx->torn = ctx->torn || ctx->busy;
    ctx->calls = ctx->busy = 0;
    ctx->counted = forks;
}

static void count_in(const struct exti_call *c)
{
    count_calls(c->ctx);
    c->ctx->calls++;
    c->ctx->busy += !c->resting;
}

static void count_out(const struct exti_call *c)
{
    c->ctx->calls--;
    c->ctx->busy -= !c->resting;
}

/* ---- forks ---- */

#ifdef _WIN32 /* which has none */
int exti__calls_survive_forks(void)
{
    return 0;
}

static void await_fork(const struct exti_ctx *ctx)
{
    (void)ctx;
}

/* There no context ends alone. */
static void await_calls(const struct exti_ctx *ctx)
{
    (void)ctx;
}
#else
/* A fork on a thread of `ctx`, from when it waits for other threads until it has happened. */
struct fork_in_flight {
    const struct exti_ctx *ctx; /* compared only; NULL: the thread does not fork */
    struct fork_in_flight *next;
};

static struct fork_in_flight *in_flight;
static _Thread_local struct fork_in_flight own_fork;

static bool others_are_busy(const struct exti_ctx *ctx)
{
    unsigned own = 0;

    for (const struct exti_call *c = innermost; c; c = c->outer)
        own += c->ctx == ctx && !c->resting;
    return ctx->counted == forks && ctx->busy > own;
}

static bool own_is_busy(const struct exti_ctx *ctx)
{
    const struct exti_call *c = innermost;

    while (c && (c->ctx != ctx || c->resting))
        c = c->outer;
    return c != NULL;
}

static void take_out_own_fork(void)
{
    struct fork_in_flight **f = &in_flight;

    while (*f && *f != &own_fork)
        f = &(*f)->next;
    if (*f)
        *f = own_fork.next;
    own_fork.ctx = NULL;
}

static bool is_forked_by_another(const struct exti_ctx *ctx)
{
    const struct fork_in_flight *f = in_flight;

    while (f && (f == &own_fork || f->ctx != ctx))
        f = f->next;
    return f != NULL;
}

/* Of two that wait for each other through a lock of the program, none does for ever. */
static void await_fork(const struct exti_ctx *ctx)
{
    struct timespec end;

    if (!is_forked_by_another(ctx) || own_is_busy(ctx) || exti__fork_guard_is_entered())
        return;
    end = exti__fork_patience_end();
    while (is_forked_by_another(ctx) && !pthread_cond_timedwait(&ended, &lock, &end))
        ;
}

/* As long as a fork waits. */
static void await_calls(const struct exti_ctx *ctx)
{
    const struct timespec end = exti__fork_patience_end();

    while (ctx->calls && !pthread_cond_timedwait(&ended, &lock, &end))
        ;
}

void exti__calls_begin_fork(const struct exti_ctx *ctx)
{
    const struct timespec end = exti__fork_patience_end();

    lock_calls();
    if (!own_fork.ctx) {
        own_fork = (struct fork_in_flight){ctx, in_flight};
        in_flight = &own_fork;
    }
    while (others_are_busy(ctx) && !pthread_cond_timedwait(&ended, &lock, &end))
        ;
    unlock_calls();
}

void exti__calls_end_fork(void)
{
    lock_calls();
    take_out_own_fork();
    pthread_cond_broadcast(&ended);
    unlock_calls();
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int install_error;

/* In the child: of the calls in flight it has those of the thread that forked. */
static void recount_calls(void)
{
    for (const struct exti_call *c = innermost; c; c = c->outer)
        count_out(c);
    forks++;
    for (const struct exti_call *c = innermost; c; c = c->outer)
        count_in(c);
    in_flight = NULL;
    own_fork.ctx = NULL;
    pthread_cond_init(&ended, NULL);
    unlock_calls();
}

static void install_call_fork_handlers(void)
{
    install_error = pthread_atfork(lock_calls, unlock_calls, recount_calls);
}

int exti__calls_survive_forks(void)
{
    pthread_once(&once, install_call_fork_handlers);
    return install_error;
}
#endif

/* Why no call may begin, or NULL.  While a context is closed, its finalisers call back on the
 * closing thread. */
static const char *refusal(struct exti_ctx *ctx)
{
    count_calls(ctx);
    if (ctx->torn)
        return "this process was forked while another thread was changing the context";
    return ctx->closing && !pthread_equal(ctx->closer, pthread_self())
               ? "another thread is closing the context"
               : NULL;
}

/* A fork waits for calls that do not rest, so one that ends its rest waits for a fork. */
static void set_resting(struct exti_call *c, bool resting)
{
    if (!resting)
        await_fork(c->ctx);
    count_out(c);
    c->resting = resting;
    count_in(c);
}

static void add_call(struct exti_call *c, struct exti_ctx *ctx, bool resting)
{
    *c = (struct exti_call){.ctx = ctx, .outer = innermost, .resting = true};
    count_in(c);
    innermost = c;
    if (!resting)
        set_resting(c, false);
}

static int fail_refused(const struct exti_ctx *ctx, const char *why, struct exti_error *err)
{
    return exti__fail(err, EXTI_E_BUSY, EXTI_NO_OFFSET, "%s '%s'", why, exti__ctx_name(ctx));
}

int exti__call_begin(struct exti_call *c, struct exti_ctx *ctx, struct exti_error *err)
{
    const char *why;

    lock_calls();
    why = refusal(ctx);
    if (!why)
        add_call(c, ctx, false);
    unlock_calls();
    return why ? fail_refused(ctx, why, err) : 0;
}

static bool begin_at(struct exti_call *c, uintptr_t address, bool note, struct exti_module *caller)
{
    bool found;

    *c = (struct exti_call){0};
    if (exti__holds_fork_lock())
        return false;
    /* As long as the map has the module, its context is not freed without this lock. */
    lock_calls();
    found = exti__address_map_find(address, caller);
    if (found && !note)
        c->refused = refusal(caller->ctx);
    if (found && !c->refused)
        add_call(c, caller->ctx, note);
    unlock_calls();
    return found && !c->refused;
}

bool exti__call_begin_at(struct exti_call *c, uintptr_t address, struct exti_module *caller)
{
    return begin_at(c, address, false, caller);
}

bool exti__call_begin_note(struct exti_call *c, uintptr_t address, struct exti_module *caller)
{
    return begin_at(c, address, true, caller);
}

bool exti__call_begin_in(struct exti_call *c, struct exti_ctx *_Atomic *place)
{
    struct exti_ctx *ctx;

    *c = (struct exti_call){0};
    if (!place || exti__holds_fork_lock())
        return false;
    lock_calls();
    ctx = atomic_load(place);
    if (ctx)
        add_call(c, ctx, true);
    unlock_calls();
    return ctx != NULL;
}

void exti__call_end(struct exti_call *c)
{
    lock_calls();
    innermost = c->outer;
    count_out(c);
    pthread_cond_broadcast(&ended);
    unlock_calls();
}

/* ---- rest ---- */

struct exti_call *exti__call_innermost(void)
{
    return innermost;
}

void exti__call_rest(void)
{
    if (!innermost)
        return;
    lock_calls();
    set_resting(innermost, true);
    pthread_cond_broadcast(&ended);
    unlock_calls();
}

void exti__call_resume(void)
{
    if (!innermost)
        return;
    lock_calls();
    set_resting(innermost, false);
    unlock_calls();
}

void exti__calls_abandon(struct exti_call *c)
{
    while (innermost && innermost != c)
        exti__call_end(innermost);
    if (innermost)
        exti__call_end(innermost);
}

/* ---- closing ---- */

static bool is_in_call(const struct exti_ctx *ctx)
{
    const struct exti_call *c = innermost;

    while (c && c->ctx != ctx)
        c = c->outer;
    return c != NULL;
}

int exti__calls_stop(struct exti_ctx *ctx, enum exti_patience patience, struct exti_error *err)
{
    int rc = 0;

    if (is_in_call(ctx))
        return exti__fail(err, EXTI_E_BUSY, EXTI_NO_OFFSET,
                          "a constructor or hook of the context '%s' cannot close it",
                          exti__ctx_name(ctx));
    lock_calls();
    count_calls(ctx);
    if (patience == EXTI_PATIENCE_SOME && !innermost)
        await_calls(ctx);
    if (ctx->torn) {
        rc = fail_refused(ctx, refusal(ctx), err);
    } else if (ctx->calls && (patience != EXTI_PATIENCE_ALL || innermost)) {
        rc = exti__fail(err, EXTI_E_BUSY, EXTI_NO_OFFSET,
                        "%u calls of other threads use the context '%s'; close it when they have "
                        "ended",
                        ctx->calls, exti__ctx_name(ctx));
    } else {
        ctx->closing = true;
        ctx->closer = pthread_self();
        while (ctx->calls)
            pthread_cond_wait(&ended, &lock);
    }
    unlock_calls();
    return rc;
}

bool exti__calls_are_stopped(struct exti_ctx *ctx, bool *here)
{
    bool stopped;

    lock_calls();
    stopped = ctx->closing;
    *here = stopped && pthread_equal(ctx->closer, pthread_self());
    unlock_calls();
    return stopped;
}

void exti__calls_forget(struct exti_ctx *ctx)
{
    lock_calls();
    while (ctx->calls)
        pthread_cond_wait(&ended, &lock);
    unlock_calls();
}
