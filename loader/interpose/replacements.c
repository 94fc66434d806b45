#include "loader/interpose/replacements.h"

#include <stddef.h>

#include "loader/interpose/close_calls.h"
#include "loader/interpose/context_pid.h"
#include "loader/interpose/dl_calls.h"
#include "loader/interpose/fork_calls.h"
#include "loader/interpose/lock_calls.h"
#include "loader/interpose/signal_calls.h"
#include "loader/interpose/thread_calls.h"
#include "loader/interpose/timer_calls.h"

void *exti__replacement(const char *symbol)
{
    void *(*const families[])(const char *symbol) = {
        exti__dl_call,    exti__thread_call, exti__fork_call,        exti__lock_call,
        exti__close_call, exti__signal_call, exti__context_pid_call, exti__timer_call};
    void *to = NULL;

    for (size_t i = 0; i < sizeof families / sizeof *families && !to; i++)
        to = families[i](symbol);
    return to;
}
