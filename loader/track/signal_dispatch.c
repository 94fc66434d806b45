/* A signal is sent on to a thread with the number of its context in si_errno, which is 0 otherwise.
 * Its si_code is there too: rt_tgsigqueueinfo(2) lets a process send other threads what sigqueue(3)
 * would.  All else is as it came.  Where the C library makes the information, the number is in
 * si_value. */
#define _GNU_SOURCE
#include "loader/track/signal_dispatch.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "loader/track/address_map.h"
#include "loader/track/children.h"
#include "loader/track/moment.h"
#include "loader/track/parked_signals.h"
#include "loader/track/signal_hand_over.h"
#include "loader/track/timer_table.h"

/* What the upper bits of si_errno say; 16 of the number follow, and 8 of si_code. */
enum mark {
    NO_MARK = 0,
    MARK_OWN = 0x45,     /* the context's */
    MARK_HANDLED = 0x46, /* likewise, and it had a function for it when it was sent on */
    MARK_THREAD = 0x47,  /* of each context whose signals the thread handles */
    MARK_OUTSIDE = 0x48, /* it comes from outside, whoever has sent it */
};

#define LATE 100000000u            /* ns */
#define VALUE_MARK 0x4558496c0000u /* upper bits of si_value */

static bool is_function(const struct exti_signal_action *a)
{
    return exti__signal_is_function(a->handler);
}

/* ---- marks ---- */

static void *value_of(const struct exti_signals *s)
{
    return (void *)(uintptr_t)(VALUE_MARK | exti__signals_number(s));
}

static void put_mark(siginfo_t *info, enum mark mark, unsigned number)
{
    info->si_errno = (int)((unsigned)mark << 24 | number << 8 | ((unsigned)info->si_code & 0xff));
    info->si_code = SI_QUEUE;
}

static enum mark mark_of(const siginfo_t *info)
{
    const unsigned mark = (unsigned)info->si_errno >> 24;

    return mark >= MARK_OWN && mark <= MARK_OUTSIDE ? (enum mark)mark : NO_MARK;
}

/* Takes the mark off. */
static enum mark take_mark(siginfo_t *info, unsigned *number)
{
    const enum mark mark = mark_of(info);
    const uintptr_t value = (uintptr_t)info->si_value.sival_ptr;
    const int code = info->si_errno & 0xff;

    if (mark) {
        *number = (unsigned)info->si_errno >> 8 & 0xffff;
        /* SI_KERNEL, 0x80, is the one above 0x7f that is not negative. */
        info->si_code = code > 0x7f && code != SI_KERNEL ? code - 0x100 : code;
        info->si_errno = 0;
        return mark;
    }
    if ((info->si_code != SI_QUEUE && info->si_code != SI_TIMER) ||
        (value & ~(uintptr_t)0xffff) != VALUE_MARK)
        return NO_MARK;
    *number = (unsigned)value & 0xffff;
    info->si_value.sival_ptr = NULL;
    /* As pthread_kill(3) and setitimer(2) have it. */
    info->si_code = info->si_code == SI_QUEUE ? SI_TKILL : SI_KERNEL;
    return MARK_OWN;
}

static int send_marked(pid_t thread, enum mark mark, unsigned number, siginfo_t *info)
{
    put_mark(info, mark, number);
    return syscall(SYS_rt_tgsigqueueinfo, getpid(), thread, info->si_signo, info) ? errno : 0;
}

/* To the process. */
static void send_again(siginfo_t *info)
{
    put_mark(info, MARK_OUTSIDE, 0);
    syscall(SYS_rt_sigqueueinfo, getpid(), info->si_signo, info);
}

bool exti__signal_send_value(const struct exti_signals *s, int sig, union sigval *out)
{
    const struct exti_signal_action a = exti__signal_action(s, sig);

    out->sival_ptr = value_of(s);
    return is_function(&a);
}

union sigval exti__signal_timer_value(const struct exti_signals *s)
{
    return (union sigval){.sival_ptr = value_of(s)};
}

/* ---- actions ---- */

/* The frame in which the innermost handler of the thread was called.  NULL: there is none. */
static _Thread_local const char *handling;

static void call(const struct exti_signal_action *a, siginfo_t *info, void *context)
{
    const struct sigaction to = {.sa_handler = a->handler};
    const char *outer = handling;
    const unsigned paused = exti__hand_over_pause();

    handling = __builtin_frame_address(0);
    if (a->flags & SA_SIGINFO)
        to.sa_sigaction(info->si_signo, info, context); /* of one union with sa_handler */
    else
        a->handler(info->si_signo);
    handling = outer;
    exti__hand_over_resume(paused);
}

/* A handler may have been left by siglongjmp, for a frame above it. */
bool exti__signals_handling(void)
{
    return handling && (const char *)__builtin_frame_address(0) < handling;
}

static bool call_program(siginfo_t *info, void *context)
{
    const struct exti_signal_action a = exti__signal_of_program(info->si_signo);

    if (!is_function(&a))
        return false;
    if (a.flags & SA_RESETHAND)
        exti__signal_reset_program(info->si_signo);
    call(&a, info, context);
    return true;
}

/* Ends the process, whatever contexts have set. */
static void take_default(int sig)
{
    const struct sigaction none = {.sa_handler = SIG_DFL};
    sigset_t one;

    sigaction(sig, &none, NULL);
    sigemptyset(&one);
    sigaddset(&one, sig);
    syscall(SYS_tgkill, getpid(), exti__signal_thread(), sig);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
}

static bool call_context(struct exti_signals *s, siginfo_t *info, void *context)
{
    const struct sigaction none = {.sa_handler = SIG_DFL};
    struct exti_signal_action a;

    if (!exti__signals_enter(s))
        return false;
    a = exti__signal_action(s, info->si_signo);
    if (is_function(&a)) {
        if (a.flags & SA_RESETHAND)
            exti__signal_set(s, info->si_signo, &none, NULL);
        call(&a, info, context);
    }
    exti__signals_leave(s);
    return is_function(&a);
}

/* The default action for one of several contexts: true if that is to end. */
static bool end_context(struct exti_signals *s, int sig)
{
    struct exti_ctx *ctx = exti__signals_enter(s);
    const bool ends = ctx && ctx->hooks.end && exti__signal_ends_process(sig) &&
                      exti__ctx_living() > 1 && !exti__signals_are_childs();

    if (ends)
        ctx->hooks.end(ctx->user, ctx, sig);
    if (ctx)
        exti__signals_leave(s);
    return ends;
}

/* ---- one context's ---- */

/* The signal is the context's alone, and has arrived.  `handled`: for a function, which the context
 * may have taken back since. */
static void arrive(struct exti_signals *s, siginfo_t *info, void *context, bool handled)
{
    const int sig = info->si_signo;
    const struct exti_signal_action a = exti__signal_action(s, sig);

    /* It was sent before the context ended, or was closed. */
    if (!exti__signals_enter(s))
        return;
    exti__signals_leave(s);
    if (call_context(s, info, context) || handled || a.handler == SIG_IGN ||
        !exti__signal_ends_process(sig))
        return;
    if (!end_context(s, sig) && !call_program(info, context))
        take_default(sig);
}

/* Calls the handlers of the contexts whose signals the calling thread handles, but the one that has
 * taken it by waiting for it. */
static bool arrive_on_thread(siginfo_t *info, void *context, const struct exti_signals *waiter)
{
    const pid_t thread = exti__signal_thread();
    bool any = false;

    for (unsigned i = 0; i < exti__signals_count(); i++) {
        struct exti_signals *s = exti__signals_at(i);
        const struct exti_signal_action a = exti__signal_action(s, info->si_signo);

        if (s != waiter && is_function(&a) && a.thread == thread && call_context(s, info, context))
            any = true;
    }
    return any;
}

/* ---- from outside ---- */

/* Whether a context before the nth has sent the signal to the thread already. */
static bool was_sent(unsigned n, int sig, pid_t thread)
{
    for (unsigned i = 0; i < n; i++) {
        const struct exti_signals *s = exti__signals_at(i);
        const struct exti_signal_action a = exti__signal_action(s, sig);

        if ((is_function(&a) || a.waited) && a.thread == thread)
            return true;
    }
    return false;
}

/* To the thread that the nth context has for it.  A thread that has ended left it to this one. */
static void send_on(unsigned n, const struct exti_signal_action *a, siginfo_t *info, void *context)
{
    siginfo_t marked = *info;

    if (was_sent(n, info->si_signo, a->thread))
        return;
    if (send_marked(a->thread, MARK_THREAD, 0, &marked) && is_function(a))
        call_context(exti__signals_at(n), info, context);
}

/* `waiter`: the context that has taken it by waiting for it, or NULL. */
static void arrive_from_outside(siginfo_t *info, void *context, const struct exti_signals *waiter)
{
    const int sig = info->si_signo;
    const pid_t thread = exti__signal_thread();
    const bool by_program = call_program(info, context);
    bool taken = by_program || waiter, here = false;

    if (!exti__signals_are_ours())
        return;
    for (unsigned i = 0; i < exti__signals_count(); i++) {
        struct exti_signals *s = exti__signals_at(i);
        const struct exti_signal_action a = exti__signal_action(s, sig);

        struct exti_ctx *ctx = exti__signals_enter(s);

        if (!ctx)
            continue;
        if (sig == SIGCHLD && exti__signal_drops_children(&a))
            exti__children_drop_ended(ctx);
        exti__signals_leave(s);
        if (s == waiter)
            continue;
        if (is_function(&a) && a.thread == thread)
            here = true;
        else if (is_function(&a) || a.waited)
            send_on(i, &a, info, context);
        else if (a.handler == SIG_DFL && !by_program && !end_context(s, sig))
            continue;
        taken = true;
    }
    if (here)
        arrive_on_thread(info, context, waiter);
    /* The program has put the dispatcher back after the last context was closed. */
    if (!taken && exti__signal_ends_process(sig))
        take_default(sig);
}

/* ---- faults ---- */

static uintptr_t counter_of(const void *context)
{
    const ucontext_t *u = context;

#if defined(__x86_64__)
    return (uintptr_t)u->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (uintptr_t)u->uc_mcontext.pc;
#else
    (void)u;
    return 0;
#endif
}

static bool is_fault(const siginfo_t *info)
{
    switch (info->si_signo) {
    case SIGSEGV:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGTRAP:
    case SIGSYS:
        return info->si_code > 0;
    default:
        return false;
    }
}

static void fault(siginfo_t *info, void *context)
{
    const struct sigaction none = {.sa_handler = SIG_DFL};
    struct exti_signals *s = NULL;
    struct exti_module m;

    if (exti__address_map_find(counter_of(context), &m))
        s = atomic_load(&m.ctx->signals);
    if ((s && call_context(s, info, context)) || call_program(info, context) ||
        arrive_on_thread(info, context, NULL))
        return;
    /* What faulted does so again, and so the process ends where it is wrong. */
    if (info->si_signo == SIGTRAP || info->si_signo == SIGSYS)
        take_default(info->si_signo);
    else
        sigaction(info->si_signo, &none, NULL);
}

/* ---- the dispatcher ---- */

/* By setitimer(2) of the program. */
static bool is_programs_timer(const siginfo_t *info)
{
    const int sig = info->si_signo;

    return info->si_code == SI_KERNEL && (sig == SIGALRM || sig == SIGVTALRM || sig == SIGPROF);
}

/* By pthread_kill(3) or a timer, of the program or of a library that is no copy. */
static bool is_to_thread(const siginfo_t *info)
{
    return (info->si_code == SI_TKILL && info->si_pid == getpid()) || info->si_code == SI_TIMER;
}

/* The signal is the context's alone: its thread for it gets it. */
static void arrive_there(struct exti_signals *s, siginfo_t *info, void *context)
{
    const struct exti_signal_action a = exti__signal_action(s, info->si_signo);

    if ((is_function(&a) || a.waited) && a.thread != exti__signal_thread()) {
        siginfo_t marked = *info;

        if (!send_marked(a.thread, is_function(&a) ? MARK_HANDLED : MARK_OWN,
                         exti__signals_number(s), &marked))
            return;
    }
    arrive(s, info, context, false);
}

/* By timer_create(2) of a context; false: it is none's.  What the timer was told to have done with
 * the signal is done by the thread that handles it since. */
static bool arrive_by_timer(siginfo_t *info, void *context)
{
    struct exti_signals *s;
    bool deleted = false;

    s = info->si_code == SI_TIMER ? exti__timer_owner(info->si_timerid, &deleted) : NULL;
    if (!s || deleted)
        return deleted;
    arrive_there(s, info, context);
    return true;
}

/* Whether a child of a context, or its child, has sent the signal by kill(2) or sigqueue(3). */
static enum exti_kinship find_sender(const siginfo_t *info, struct exti_child *out)
{
    const bool sent = info->si_code == SI_USER || info->si_code == SI_QUEUE;

    return sent && info->si_pid != getpid() ? exti__child_find(info->si_pid, out) : EXTI_CHILD_NONE;
}

/* A process of one thread would have handled it before it took the function back: another thread
 * has only now come to it. */
static bool is_late(const struct exti_child *sender, int sig)
{
    const struct exti_signal_action a = exti__signal_action(sender->signals, sig);

    return a.handler == SIG_DFL && sender->started < a.left && exti__now() < a.left + LATE;
}

/* To the context's thread for it, which may block it. */
static void send_to_context(struct exti_signals *s, siginfo_t *info)
{
    const struct exti_signal_action a = exti__signal_action(s, info->si_signo);
    const bool function = is_function(&a);

    send_marked(function || a.waited ? a.thread : exti__signal_thread(),
                function ? MARK_HANDLED : MARK_OWN, exti__signals_number(s), info);
}

/* Sends on what was parked; false: its sender may still be a child that is being started. */
static bool send_parked(siginfo_t *info, uint64_t begun)
{
    const bool starts = exti__children_start(begun);
    struct exti_child sender;
    const enum exti_kinship kin = find_sender(info, &sender);

    if (kin == EXTI_CHILD_UNKNOWN && starts)
        return false;
    if (kin != EXTI_CHILD_STARTED)
        send_again(info);
    else if (!is_late(&sender, info->si_signo))
        send_to_context(sender.signals, info);
    return true;
}

void exti__signals_unpark(void)
{
    exti__signals_each_parked(send_parked, exti__children_start);
}

/* Until it is known whose child the sender is, if that can be a context's. */
static bool park(const siginfo_t *info)
{
    const uint64_t begun = exti__children_begun();

    if (!exti__children_start(begun) || !exti__signal_park(info, begun))
        return false;
    exti__signals_unpark();
    return true;
}

/* To the context whose children send it, as to the process that has such children.  False: it is
 * from elsewhere. */
static bool arrive_from_child(siginfo_t *info, void *context)
{
    struct exti_child sender;
    enum exti_kinship kin = find_sender(info, &sender);

    if (kin == EXTI_CHILD_UNKNOWN && park(info))
        return true;
    if (kin == EXTI_CHILD_UNKNOWN)
        kin = find_sender(info, &sender); /* its start has ended meanwhile, if it was one */
    if (kin != EXTI_CHILD_STARTED)
        return false;
    if (!is_late(&sender, info->si_signo))
        arrive_there(sender.signals, info, context);
    return true;
}

static bool arrive_at_thread(siginfo_t *info, void *context)
{
    const bool by_program = call_program(info, context);

    return arrive_on_thread(info, context, NULL) || by_program;
}

static void arrive_unmarked(siginfo_t *info, void *context)
{
    bool taken = true;

    if (is_fault(info))
        fault(info, context);
    else if (is_programs_timer(info))
        taken = call_program(info, context);
    else if (!arrive_by_timer(info, context))
        taken = is_to_thread(info) && arrive_at_thread(info, context);
    if (!taken && !arrive_from_child(info, context))
        arrive_from_outside(info, context, NULL);
}

/* The process's; by another thread, if that is to handle it. */
static void arrive_at_process(siginfo_t *info, void *context, bool outside)
{
    exti__hand_over_begin();
    if (outside)
        arrive_from_outside(info, context, NULL);
    else
        arrive_unmarked(info, context);
    exti__hand_over_end();
}

static void dispatch(int sig, siginfo_t *info, void *context)
{
    const int error = errno;
    unsigned number = 0;
    const enum mark mark = take_mark(info, &number);
    struct exti_signals *s =
        mark == MARK_OWN || mark == MARK_HANDLED ? exti__signals_at(number) : NULL;

    (void)sig;
    if (s)
        arrive(s, info, context, mark == MARK_HANDLED);
    else if (mark == MARK_THREAD)
        arrive_on_thread(info, context, NULL);
    else
        arrive_at_process(info, context, mark == MARK_OUTSIDE);
    errno = error;
}

/* The kernel gives a signal of the process to any thread that does not block it or waits for it,
 * and so to the one that waits where all others block it. */
void exti__signal_taken(const struct exti_signals *waiter, siginfo_t *info)
{
    const int error = errno;
    unsigned number;
    const enum mark mark = take_mark(info, &number);
    ucontext_t nowhere;

    if ((mark == NO_MARK || mark == MARK_OUTSIDE) && waiter && !is_fault(info) &&
        !is_programs_timer(info) && !is_to_thread(info)) {
        siginfo_t seen = *info;
        struct exti_child sender;
        const bool by_child = find_sender(info, &sender) == EXTI_CHILD_STARTED;

        if (by_child && sender.signals == waiter)
            return;
        /* No code was interrupted whose registers a handler could be shown. */
        memset(&nowhere, 0, sizeof nowhere);
        exti__hand_over_begin();
        if (by_child)
            arrive_there(sender.signals, &seen, &nowhere);
        else
            arrive_from_outside(&seen, &nowhere, waiter);
        exti__hand_over_end();
    }
    errno = error;
}

void exti__signals_begin(void)
{
    exti__signals_survive_forks(dispatch);
    exti__hand_overs_survive_forks();
}

/* ---- what contexts send themselves ---- */

static bool is_dispatched(int sig)
{
    return exti__signals_dispatched() >> (sig - 1) & 1;
}

static bool blocks(int sig)
{
    sigset_t blocked;

    return pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0 && sigismember(&blocked, sig) == 1;
}

int exti__signal_send(struct exti_signals *s, pid_t thread, siginfo_t *info)
{
    const int sig = info->si_signo;
    const struct exti_signal_action a = exti__signal_action(s, sig);

    if (thread == 0)
        thread = a.thread;
    if (a.handler == SIG_IGN)
        return 0;
    if (is_function(&a) || a.waited || is_dispatched(sig) || blocks(sig)) {
        return send_marked(thread, MARK_OWN, exti__signals_number(s), info);
    }
    /* The process's action is the default for all, or the program's. */
    if (end_context(s, sig))
        return 0;
    return syscall(SYS_tgkill, getpid(), thread, sig) ? errno : 0;
}
