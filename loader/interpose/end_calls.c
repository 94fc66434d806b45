#define _GNU_SOURCE /* on_exit */
#include "loader/interpose/end_calls.h"

#undef NDEBUG /* which hides __assert_fail, and zig defines it */
#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

#include "loader/track/calls.h"
#include "loader/track/context_end.h"
#include "loader/track/exit_handlers.h"
#include "loader/track/redirects.h"

#define CALL (uintptr_t) __builtin_return_address(0)

/* The C library's; those that some lack are weak. */
extern int __cxa_atexit(void (*function)(void *), void *arg, void *library);
extern int __cxa_at_quick_exit(void (*function)(void *), void *library) __attribute__((weak));
extern int on_exit(void (*function)(int, void *), void *arg) __attribute__((weak));

/* ---- ending ---- */

static _Noreturn void interposed_exit(int status)
{
    struct exti_ctx *ctx = exti__context_ending(CALL);

    if (ctx)
        exti__context_exit(ctx, status);
    exit(status);
}

static _Noreturn void interposed__exit(int status)
{
    struct exti_ctx *ctx = exti__context_ending(CALL);

    if (ctx)
        exti__context_cut_off(ctx, status);
    _exit(status);
}

static _Noreturn void interposed_quick_exit(int status)
{
    struct exti_ctx *ctx = exti__context_ending(CALL);

    if (ctx) {
        exti__quick_exit_handlers_run(ctx);
        exti__context_cut_off(ctx, status);
    }
    quick_exit(status);
}

/* ---- dying ---- */

static void tell_abort(uintptr_t call)
{
    struct exti_call c;

    if (!exti__context_call_begin(&c, call))
        return;
    if (c.ctx->hooks.abort)
        c.ctx->hooks.abort(c.ctx->user, c.ctx);
    exti__call_end(&c);
}

static _Noreturn void interposed_abort(void)
{
    tell_abort(CALL);
    abort();
}

static _Noreturn void interposed_assert_fail(const char *text, const char *file, unsigned line,
                                             const char *function)
{
    tell_abort(CALL);
#ifdef __GLIBC__
    __assert_fail(text, file, line, function);
#else
    __assert_fail(text, file, (int)line, function);
#endif
}

/* ---- registering ---- */

static bool begin_note(struct exti_call *c, const void *library, uintptr_t call,
                       struct exti_module *m)
{
    return exti__call_begin_note(c, (uintptr_t)library, m) || exti__call_begin_note(c, call, m);
}

static int interposed_cxa_atexit(void (*function)(void *), void *arg, void *library)
{
    struct exti_call call;
    struct exti_module m;
    int rc;

    if (!begin_note(&call, library, CALL, &m))
        return __cxa_atexit(function, arg, library);
    rc = exti__at_exit(&m, function, arg, library);
    exti__call_end(&call);
    return rc;
}

static int interposed_on_exit(void (*function)(int, void *), void *arg)
{
    struct exti_call call;
    struct exti_module m;
    int rc;

    if (!begin_note(&call, EXTI_ADDRESS(function), CALL, &m))
        return on_exit(function, arg);
    rc = exti__on_exit(&m, function, arg);
    exti__call_end(&call);
    return rc;
}

static int interposed_at_quick_exit(void (*function)(void))
{
    struct exti_call call;
    struct exti_module m;
    int rc;

    if (!begin_note(&call, EXTI_ADDRESS(function), CALL, &m))
        return at_quick_exit(function);
    rc = exti__at_quick_exit(&m, function);
    exti__call_end(&call);
    return rc;
}

/* What libc_nonshared.a's at_quick_exit calls, with a function without arguments. */
static int interposed_cxa_at_quick_exit(void (*function)(void *), void *library)
{
    struct exti_call call;
    struct exti_module m;
    int rc;

    if (!begin_note(&call, library, CALL, &m))
        return __cxa_at_quick_exit(function, library);
    rc = exti__at_quick_exit(&m, (void (*)(void))function);
    exti__call_end(&call);
    return rc;
}

/* ---- looking them up ---- */

void *exti__end_call(const struct exti_ctx *ctx, const char *symbol)
{
    const struct exti_redirect calls[] = {
        {"exit", EXTI_ADDRESS(interposed_exit)},
        {"_exit", EXTI_ADDRESS(interposed__exit)},
        {"_Exit", EXTI_ADDRESS(interposed__exit)},
        {"quick_exit", EXTI_ADDRESS(interposed_quick_exit)},
        {"abort", EXTI_ADDRESS(interposed_abort)},
        {"__assert_fail", EXTI_ADDRESS(interposed_assert_fail)},
        {"__cxa_atexit", EXTI_ADDRESS(interposed_cxa_atexit)},
        {"on_exit", on_exit ? EXTI_ADDRESS(interposed_on_exit) : NULL},
        {"at_quick_exit", EXTI_ADDRESS(interposed_at_quick_exit)},
        {"__cxa_at_quick_exit",
         __cxa_at_quick_exit ? EXTI_ADDRESS(interposed_cxa_at_quick_exit) : NULL},
    };

    if (ctx->flags & EXTI_CTX_PROCESS_ENDS)
        return NULL;
    return exti__redirect_find(calls, sizeof calls / sizeof *calls, symbol);
}
