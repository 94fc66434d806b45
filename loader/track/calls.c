#include "loader/track/calls.h"

#include "loader/track/address_map.h"

/* Guards `calls`, `forks`, `closing` and `closer` of all contexts.  The address map's lock is taken
 * under it, and no other. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;

static unsigned forks; /* between this process and the first */

static _Thread_local struct exti_call *innermost;

/* The calls of a parent's threads count no more.  The lock is held. */
static unsigned count_calls(struct exti_ctx *ctx)
{
    if (ctx->forks != forks)
        ctx->calls = 0;
    ctx->forks = forks;
    return ctx->calls;
}

#ifdef _WIN32 /* which has no fork */
int exti__calls_survive_forks(void)
{
    return 0;
}
#else
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int install_error;

static void lock_calls(void)
{
    pthread_mutex_lock(&lock);
}

static void unlock_calls(void)
{
    pthread_mutex_unlock(&lock);
}

/* In the child: of the calls in flight it has those of the thread that forked. */
static void recount_calls(void)
{
    forks++;
    for (const struct exti_call *c = innermost; c; c = c->outer)
        count_calls(c->ctx);
    for (const struct exti_call *c = innermost; c; c = c->outer)
        c->ctx->calls++;
    pthread_cond_init(&ended, NULL);
    pthread_mutex_unlock(&lock);
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

/* The lock is held.  While a context is closed, its finalisers call back on the closing thread. */
static bool may_begin(const struct exti_ctx *ctx)
{
    return !ctx->closing || pthread_equal(ctx->closer, pthread_self());
}

static void add_call(struct exti_call *c, struct exti_ctx *ctx)
{
    *c = (struct exti_call){.ctx = ctx, .outer = innermost};
    innermost = c;
    ctx->calls = count_calls(ctx) + 1;
}

int exti__call_begin(struct exti_call *c, struct exti_ctx *ctx, struct exti_error *err)
{
    bool begun;

    pthread_mutex_lock(&lock);
    begun = may_begin(ctx);
    if (begun)
        add_call(c, ctx);
    pthread_mutex_unlock(&lock);
    return begun ? 0
                 : exti__fail(err, EXTI_E_BUSY, EXTI_NO_OFFSET,
                              "another thread is closing the context '%s'", exti__ctx_name(ctx));
}

static bool begin_at(struct exti_call *c, uintptr_t address, bool note, struct exti_module *caller)
{
    bool found, begun;

    /* As long as the map has the module, its context is not freed without this lock. */
    pthread_mutex_lock(&lock);
    found = exti__address_map_find(address, caller);
    begun = found && (note || may_begin(caller->ctx));
    if (begun)
        add_call(c, caller->ctx);
    else
        *c = (struct exti_call){.refused = found};
    pthread_mutex_unlock(&lock);
    return begun;
}

bool exti__call_begin_at(struct exti_call *c, uintptr_t address, struct exti_module *caller)
{
    return begin_at(c, address, false, caller);
}

bool exti__call_begin_note(struct exti_call *c, uintptr_t address, struct exti_module *caller)
{
    return begin_at(c, address, true, caller);
}

void exti__call_end(struct exti_call *c)
{
    innermost = c->outer;
    pthread_mutex_lock(&lock);
    if (!--c->ctx->calls)
        pthread_cond_broadcast(&ended);
    pthread_mutex_unlock(&lock);
}

static bool is_in_call(const struct exti_ctx *ctx)
{
    const struct exti_call *c = innermost;

    while (c && c->ctx != ctx)
        c = c->outer;
    return c != NULL;
}

int exti__calls_stop(struct exti_ctx *ctx, bool wait, struct exti_error *err)
{
    int rc = 0;

    if (is_in_call(ctx))
        return exti__fail(err, EXTI_E_BUSY, EXTI_NO_OFFSET,
                          "a constructor or hook of the context '%s' cannot close it",
                          exti__ctx_name(ctx));
    pthread_mutex_lock(&lock);
    if (count_calls(ctx) && !wait) {
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
    pthread_mutex_unlock(&lock);
    return rc;
}

void exti__calls_forget(struct exti_ctx *ctx)
{
    pthread_mutex_lock(&lock);
    while (ctx->calls)
        pthread_cond_wait(&ended, &lock);
    pthread_mutex_unlock(&lock);
}
