#define _GNU_SOURCE
#include "loader/interpose/timer_calls.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

#include "loader/track/address_map.h"
#include "loader/track/redirects.h"
#include "loader/track/signal_timers.h"

#define CALL __builtin_return_address(0)

/* The context of the copy that calls, and its signals.  NULL: the system's function is to be
 * called. */
static struct exti_signals *signals_of(const void *call, struct exti_ctx **ctx)
{
    struct exti_module m;

    if (!exti__address_map_find((uintptr_t)call, &m) || !exti__signals_are_ours())
        return NULL;
    *ctx = m.ctx;
    return exti__signals_of(m.ctx);
}

static int set_errno(int error)
{
    if (!error)
        return 0;
    errno = error;
    return -1;
}

static unsigned interposed_alarm(unsigned seconds)
{
    const struct itimerval next = {{0, 0}, {(time_t)seconds, 0}};
    struct itimerval old;
    struct exti_ctx *ctx;
    struct exti_signals *s = signals_of(CALL, &ctx);
    unsigned left;

    if (!s || exti__signal_timer(ctx, s, ITIMER_REAL, &next, &old))
        return alarm(seconds);
    /* alarm(2): what is left is not 0 before the signal has come. */
    left = (unsigned)old.it_value.tv_sec;
    return left + (old.it_value.tv_usec >= 500000 || (left == 0 && old.it_value.tv_usec > 0));
}

/* The C library's functions take the kind as an enum or as an int. */
static int interposed_setitimer(int kind, const struct itimerval *next, struct itimerval *old)
{
    const struct itimerval none = {{0, 0}, {0, 0}};
    struct exti_ctx *ctx;
    struct exti_signals *s = signals_of(CALL, &ctx);

    return s ? set_errno(exti__signal_timer(ctx, s, kind, next ? next : &none, old))
             : (int)syscall(SYS_setitimer, kind, next, old);
}

static int interposed_getitimer(int kind, struct itimerval *out)
{
    struct exti_ctx *ctx;
    struct exti_signals *s = signals_of(CALL, &ctx);

    return s ? set_errno(exti__signal_timer(ctx, s, kind, NULL, out))
             : (int)syscall(SYS_getitimer, kind, out);
}

/* ---- timer_create ---- */

/* The kernel has numbers for signals, of which the C library keeps two to itself. */
static bool is_signal(int sig)
{
    return (sig >= 1 && sig < 32) || (sig >= SIGRTMIN && sig <= SIGRTMAX);
}

static int interposed_timer_create(clockid_t clock, struct sigevent *event, timer_t *out)
{
    struct exti_ctx *ctx;
    struct exti_signals *s = signals_of(CALL, &ctx);
    const int notify = event ? event->sigev_notify : SIGEV_SIGNAL;

    if (!s || ((notify == SIGEV_SIGNAL || notify == SIGEV_THREAD_ID) && event &&
               !is_signal(event->sigev_signo)))
        return timer_create(clock, event, out);
    return exti__signal_timer_create(ctx, s, clock, event, out);
}

static int interposed_timer_delete(timer_t timer)
{
    return exti__signals_are_ours() ? exti__signal_timer_delete(timer) : timer_delete(timer);
}

/* Whether what a program has of a timer that sends signals is the kernel's number. */
static bool are_numbers(void)
{
#ifdef __GLIBC__
    const char *dot = strchr(gnu_get_libc_version(), '.');

    return dot && strtol(dot + 1, NULL, 10) >= 34;
#else
    return false;
#endif
}

static void *timer_function(const char *symbol)
{
    const struct exti_redirect calls[] = {
        {"timer_create", EXTI_ADDRESS(interposed_timer_create)},
        {"timer_delete", EXTI_ADDRESS(interposed_timer_delete)},
    };
    void *to = exti__redirect_find(calls, sizeof calls / sizeof *calls, symbol);

    return to && are_numbers() ? to : NULL;
}

void *exti__timer_call(const char *symbol)
{
    void *to = timer_function(symbol);
    const struct exti_redirect calls[] = {
        {"alarm", EXTI_ADDRESS(interposed_alarm)},
        {"setitimer", EXTI_ADDRESS(interposed_setitimer)},
        {"getitimer", EXTI_ADDRESS(interposed_getitimer)},
    };

    /* The timers of 32-bit systems take times of two sizes. */
    if (sizeof(long) < 8)
        return NULL;
    return to ? to : exti__redirect_find(calls, sizeof calls / sizeof *calls, symbol);
}
