#include "loader/track/context.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "loader/store/store_queries.h"

static atomic_size_t open_count, ended_count;
static atomic_uint next_number;
static _Atomic(pid_t) process; /* that has opened the last one; 0: this one has not */
static atomic_uint forks;      /* behind the process */

const char *exti__ctx_dir(const struct exti_ctx *ctx)
{
    return exti__store_dir(&ctx->store);
}

const char *exti__ctx_name(const struct exti_ctx *ctx)
{
    return exti__store_context_name(&ctx->store);
}

void exti__ctx_log(const struct exti_ctx *ctx, enum exti_log_level level, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    if (!ctx->hooks.log)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    ctx->hooks.log(ctx->user, level, text);
}

size_t exti__ctx_count(void)
{
    return atomic_load(&open_count);
}

size_t exti__ctx_living(void)
{
    return atomic_load(&open_count) - atomic_load(&ended_count);
}

void exti__ctx_count_ended(const struct exti_ctx *ctx)
{
    if (!(ctx->flags & EXTI_CTX_COPY_ONLY))
        atomic_fetch_add(&ended_count, 1);
}

bool exti__ctx_process_is_ours(void)
{
    return getpid() == atomic_load(&process);
}

bool exti__ctx_is_ours(const struct exti_ctx *ctx)
{
    return ctx->process == getpid() && ctx->forks == atomic_load(&forks);
}

void exti__ctx_begin_child(void)
{
    atomic_store(&process, 0);
    atomic_fetch_add(&forks, 1);
}

void exti__ctx_count_in(struct exti_ctx *ctx)
{
    ctx->number = atomic_fetch_add(&next_number, 1);
    ctx->process = getpid();
    ctx->forks = atomic_load(&forks);
    atomic_store(&process, ctx->process);
    if (!(ctx->flags & EXTI_CTX_COPY_ONLY))
        atomic_fetch_add(&open_count, 1);
}

void exti__ctx_count_out(const struct exti_ctx *ctx)
{
    if (ctx->flags & EXTI_CTX_COPY_ONLY)
        return;
    if (ctx->ended)
        atomic_fetch_sub(&ended_count, 1);
    atomic_fetch_sub(&open_count, 1);
}
