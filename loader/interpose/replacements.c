#include "loader/interpose/replacements.h"

#include <stddef.h>

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
#include "loader/interpose/locale_calls.h"
#include "loader/interpose/lock_calls.h"
#include "loader/interpose/path_calls.h"
#include "loader/interpose/shell_calls.h"
#include "loader/interpose/signal_calls.h"
#include "loader/interpose/thread_calls.h"
#include "loader/interpose/time_calls.h"
#include "loader/interpose/timer_calls.h"

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

void *exti__replacement(struct exti_ctx *ctx, const char *symbol)
{
    void *(*const families[])(const char *symbol) = {
        exti__dl_call,    exti__thread_call, exti__fork_call,        exti__lock_call,
        exti__close_call, exti__signal_call, exti__context_pid_call, exti__timer_call};
    void *to = NULL;

    if (is_apis(symbol))
        return NULL;
    for (size_t i = 0; i < sizeof families / sizeof *families && !to; i++)
        to = families[i](symbol);
    return to ? to : own_replacement(ctx, symbol);
}
