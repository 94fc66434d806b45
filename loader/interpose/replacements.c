#include "loader/interpose/replacements.h"

#include <stddef.h>

#include "loader/image/file_memo.h"
#include "loader/interpose/child_calls.h"
#include "loader/interpose/close_calls.h"
#include "loader/interpose/context_pid.h"
#include "loader/interpose/descriptor_calls.h"
#include "loader/interpose/directory_calls.h"
#include "loader/interpose/dl_calls.h"
#include "loader/interpose/end_calls.h"
#include "loader/interpose/environment_calls.h"
#include "loader/interpose/exec_calls.h"
#include "loader/interpose/fork_calls.h"
#include "loader/interpose/kept_calls.h"
#include "loader/interpose/locale_calls.h"
#include "loader/interpose/lock_calls.h"
#include "loader/interpose/path_calls.h"
#include "loader/interpose/shell_calls.h"
#include "loader/interpose/signal_calls.h"
#include "loader/interpose/thread_calls.h"
#include "loader/interpose/time_calls.h"
#include "loader/interpose/timer_calls.h"
#include "loader/track/surroundings.h"

/* Where copies share with the process what others have for themselves, some are not needed. */
static void *own_replacement(const struct exti_ctx *ctx, const char *symbol)
{
    void *(*const families[])(const struct exti_ctx *ctx, const char *symbol) = {
        exti__environment_call, exti__exec_call,  exti__shell_call,      exti__locale_call,
        exti__time_call,        exti__child_call, exti__descriptor_call, exti__path_call,
        exti__directory_call,   exti__end_call};
    void *to = NULL;

    for (size_t i = 0; i < sizeof families / sizeof *families && !to; i++)
        to = families[i](ctx, symbol);
    return to;
}

/* Most references of extension modules are to the API: Py..., _Py..., with a Q in copies that have
 * private names for it.  Nothing of the system's is called so. */
static bool is_apis(const char *symbol)
{
    const char c = symbol[symbol[0] == '_'];

    return c == 'P' || c == 'Q';
}

static void *find_replacement(const struct exti_ctx *ctx, const char *symbol)
{
    void *(*const families[])(const char *symbol) = {
        exti__dl_call,          exti__thread_call, exti__fork_call,
        exti__lock_call,        exti__close_call,  exti__signal_call,
        exti__context_pid_call, exti__timer_call,  exti__kept_call};
    void *to = NULL;

    for (size_t i = 0; i < sizeof families / sizeof *families && !to; i++)
        to = families[i](symbol);
    return to ? to : own_replacement(ctx, symbol);
}

/* Stands for a name in contexts like this one. */
static uint64_t key_of(const struct exti_ctx *ctx, const char *symbol)
{
    return exti__file_version_with((uint64_t)ctx->flags << 8 | exti__surroundings_kinds(ctx),
                                   symbol);
}

void *exti__replacement(struct exti_ctx *ctx, const char *symbol)
{
    /* Names without replacement, as most have none and each context asks for the same ones. */
    static struct exti_file_memo plain[16];
    struct exti_file_memo *memo;
    uint64_t key;
    void *to;

    if (is_apis(symbol))
        return NULL;
    key = key_of(ctx, symbol);
    memo = &plain[key >> 60];
    if (exti__file_memo_has(memo, key))
        return NULL;
    to = find_replacement(ctx, symbol);
    if (!to)
        exti__file_memo_add(memo, key);
    return to;
}
