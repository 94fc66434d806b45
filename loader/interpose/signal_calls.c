#define _GNU_SOURCE /* sysv_signal */
#include "loader/interpose/signal_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loader/track/address_map.h"
#include "loader/track/redirects.h"
#include "loader/track/signal_dispatch.h"
#include "loader/track/signal_hand_over.h"

/* What musl lacks. */
typedef void (*handler)(int);
extern handler sysv_signal(int sig, handler h) __attribute__((weak));

#define CALL __builtin_return_address(0)

/* The actions of the copy's context, or NULL: the system's function is to be called. */
static struct exti_signals *signals_of(const void *call)
{
    struct exti_module m;

    if (!exti__address_map_find((uintptr_t)call, &m) || !exti__signals_are_ours())
        return NULL;
    return exti__signals_of(m.ctx);
}

static int set_errno(int error)
{
    if (!error)
        return 0;
    errno = error;
    return -1;
}

/* ---- actions ---- */

/* The C library has some numbers to itself. */
static bool is_contexts(int sig)
{
    return (sig >= 1 && sig < 32 && sig != SIGKILL && sig != SIGSTOP) ||
           (sig >= SIGRTMIN && sig <= SIGRTMAX);
}

/* What was sent for a function is handled by it. */
static void set_action(struct exti_signals *s, int sig, const struct sigaction *act,
                       struct sigaction *old)
{
    if (act && exti__signal_is_function(exti__signal_action(s, sig).handler))
        exti__signals_settle();
    exti__signal_set(s, sig, act, old);
}

static int change_action(struct exti_signals *s, int sig, const struct sigaction *act,
                         struct sigaction *old)
{
    if (!s)
        return sigaction(sig, act, old);
    set_action(s, sig, act, old);
    return 0;
}

static int interposed_sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
    return change_action(is_contexts(sig) ? signals_of(CALL) : NULL, sig, act, old);
}

static handler set_handler(struct exti_signals *s, int sig, handler h, int flags)
{
    const struct sigaction act = {.sa_handler = h, .sa_flags = flags};
    struct sigaction old;

    if (h == SIG_ERR) {
        errno = EINVAL;
        return SIG_ERR;
    }
    set_action(s, sig, &act, &old);
    return old.sa_handler;
}

static handler interposed_signal(int sig, handler h)
{
    struct exti_signals *s = is_contexts(sig) ? signals_of(CALL) : NULL;

    if (!s)
        return signal(sig, h);
    return set_handler(s, sig, h, exti__signal_interrupts(s, sig) ? 0 : SA_RESTART);
}

static handler interposed_sysv_signal(int sig, handler h)
{
    struct exti_signals *s = is_contexts(sig) ? signals_of(CALL) : NULL;

    return s ? set_handler(s, sig, h, (int)(SA_RESETHAND | SA_NODEFER)) : sysv_signal(sig, h);
}

#pragma GCC diagnostic push /* the function is obsolete, and programs call it */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static int interposed_siginterrupt(int sig, int interrupts)
{
    struct exti_signals *s = is_contexts(sig) ? signals_of(CALL) : NULL;
    struct sigaction act;

    if (!s)
        return siginterrupt(sig, interrupts);
    exti__signal_set(s, sig, NULL, &act);
    act.sa_flags = interrupts ? act.sa_flags & ~SA_RESTART : act.sa_flags | SA_RESTART;
    exti__signal_set(s, sig, &act, NULL);
    exti__signal_interrupt(s, sig, interrupts);
    return 0;
}
#pragma GCC diagnostic pop

/* XSI: sets the action and lets the thread take the signal, or with SIG_HOLD has it held back. */
static handler interposed_sigset(int sig, handler h)
{
    struct exti_signals *s = is_contexts(sig) ? signals_of(CALL) : NULL;
    struct sigaction act = {.sa_handler = h}, old;
    const bool holds = h == SIG_HOLD;
    sigset_t set, held;

    if (change_action(s, sig, holds ? NULL : &act, &old))
        return SIG_ERR;
    sigemptyset(&set);
    sigaddset(&set, sig);
    pthread_sigmask(holds ? SIG_BLOCK : SIG_UNBLOCK, &set, &held);
    return sigismember(&held, sig) ? SIG_HOLD : old.sa_handler;
}

static int interposed_sigignore(int sig)
{
    struct exti_signals *s = is_contexts(sig) ? signals_of(CALL) : NULL;
    const struct sigaction act = {.sa_handler = SIG_IGN};

    return change_action(s, sig, &act, NULL);
}

/* ---- sending ---- */

static pid_t this_thread(void)
{
    return (pid_t)syscall(SYS_gettid);
}

static siginfo_t sent_by_us(int sig, int code)
{
    siginfo_t info;

    memset(&info, 0, sizeof info);
    info.si_signo = sig;
    info.si_code = code;
    info.si_pid = getpid();
    info.si_uid = getuid();
    return info;
}

static int interposed_raise(int sig)
{
    struct exti_signals *s = is_contexts(sig) ? signals_of(CALL) : NULL;
    siginfo_t info;

    if (!s)
        return raise(sig);
    info = sent_by_us(sig, SI_TKILL);
    return set_errno(exti__signal_send(s, this_thread(), &info));
}

/* To the context alone if it is to this process; a group has others, which get it from outside. */
static int send(const void *call, pid_t pid, int sig)
{
    struct exti_signals *s = pid == getpid() && is_contexts(sig) ? signals_of(call) : NULL;
    siginfo_t info;

    if (!s)
        return kill(pid, sig);
    info = sent_by_us(sig, SI_USER);
    return set_errno(exti__signal_send(s, 0, &info));
}

static int interposed_kill(pid_t pid, int sig)
{
    return send(CALL, pid, sig);
}

static int interposed_sigqueue(pid_t pid, int sig, const union sigval value)
{
    struct exti_signals *s = pid == getpid() && is_contexts(sig) ? signals_of(CALL) : NULL;
    siginfo_t info;

    if (!s)
        return sigqueue(pid, sig, value);
    info = sent_by_us(sig, SI_QUEUE);
    info.si_value = value;
    return set_errno(exti__signal_send(s, 0, &info));
}

static int interposed_pthread_kill(pthread_t thread, int sig)
{
    struct exti_signals *s = is_contexts(sig) ? signals_of(CALL) : NULL;
    union sigval value;
    siginfo_t info;

    if (s && pthread_equal(thread, pthread_self())) {
        info = sent_by_us(sig, SI_TKILL);
        return exti__signal_send(s, this_thread(), &info);
    }
    if (s && exti__signal_send_value(s, sig, &value))
        return pthread_sigqueue(thread, sig, value);
    return pthread_kill(thread, sig);
}

/* ---- sending by a descriptor, and without the C library's functions ---- */

/* The line is "Pid:\t123"; proc_pid_fdinfo(5). */
static bool has_our_number(const char *info)
{
    const char *line = strstr(info, "\nPid:");

    return line && strtol(line + sizeof "\nPid:" - 1, NULL, 10) == getpid();
}

/* A pidfd, or an open folder of /proc, which is as good to pidfd_send_signal(2). */
static bool is_ours(int pidfd)
{
    char path[64], info[1024];
    struct stat self, other;
    ssize_t n;
    int fd;

    if (fstat(pidfd, &other) != 0)
        return false;
    if (stat("/proc/self", &self) == 0 && self.st_dev == other.st_dev &&
        self.st_ino == other.st_ino)
        return true;
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", pidfd);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    n = read(fd, info, sizeof info - 1);
    close(fd);
    if (n < 0)
        return false;
    info[n] = 0;
    return has_our_number(info);
}

/* Linux's number for whole processes, which is meant by 0 as well, unless the descriptor is a
 * thread's. */
#define WHOLE_PROCESS 2u

static int send_by_pidfd(const void *call, int pidfd, int sig, siginfo_t *given, unsigned flags)
{
    struct exti_signals *s = is_contexts(sig) ? signals_of(call) : NULL;
    siginfo_t info;

    if (!s || (flags & ~WHOLE_PROCESS) || (given && given->si_signo != sig) || !is_ours(pidfd))
        return (int)syscall(SYS_pidfd_send_signal, pidfd, sig, given, flags);
    info = given ? *given : sent_by_us(sig, SI_USER);
    return set_errno(exti__signal_send(s, 0, &info));
}

static int interposed_pidfd_send_signal(int pidfd, int sig, siginfo_t *info, unsigned flags)
{
    return send_by_pidfd(CALL, pidfd, sig, info, flags);
}

/* CPython sends by this one.  Linux's ABIs pass variable arguments as they pass others. */
static long interposed_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    if (number == SYS_kill)
        return send(CALL, (pid_t)a, (int)b);
    if (number == SYS_pidfd_send_signal)
        return send_by_pidfd(CALL, (int)a, (int)b, (siginfo_t *)c, (unsigned)d);
    return syscall(number, a, b, c, d, e, f);
}

/* ---- waiting ---- */

/* `time` may be NULL. */
static int wait_for(struct exti_signals *s, const sigset_t *set, siginfo_t *out,
                    const struct timespec *time)
{
    siginfo_t info;
    int sig;

    if (s)
        exti__signal_wait_for(s, set);
    sig = sigtimedwait(set, &info, time);
    if (sig > 0)
        exti__signal_taken(s, &info);
    if (sig > 0 && out)
        *out = info;
    return sig;
}

static int interposed_sigwaitinfo(const sigset_t *set, siginfo_t *out)
{
    return wait_for(signals_of(CALL), set, out, NULL);
}

static int interposed_sigtimedwait(const sigset_t *set, siginfo_t *out, const struct timespec *time)
{
    return wait_for(signals_of(CALL), set, out, time);
}

/* sigwait(3) does not end with EINTR. */
static int interposed_sigwait(const sigset_t *set, int *out)
{
    struct exti_signals *s = signals_of(CALL);
    int sig;

    do
        sig = wait_for(s, set, NULL, NULL);
    while (sig < 0 && errno == EINTR);
    if (sig < 0)
        return errno;
    *out = sig;
    return 0;
}

static int interposed_signalfd(int fd, const sigset_t *set, int flags)
{
    struct exti_signals *s = signals_of(CALL);

    if (s)
        exti__signal_wait_for(s, set);
    return signalfd(fd, set, flags);
}

/* ---- looking them up ---- */

void *exti__signal_call(const char *symbol)
{
    const struct exti_redirect calls[] = {
        {"sigaction", EXTI_ADDRESS(interposed_sigaction)},
        {"__sigaction", EXTI_ADDRESS(interposed_sigaction)},
        {"signal", EXTI_ADDRESS(interposed_signal)},
        {"bsd_signal", EXTI_ADDRESS(interposed_signal)},
        {"ssignal", EXTI_ADDRESS(interposed_signal)},
        {"sysv_signal", sysv_signal ? EXTI_ADDRESS(interposed_sysv_signal) : NULL},
        {"__sysv_signal", sysv_signal ? EXTI_ADDRESS(interposed_sysv_signal) : NULL},
        {"siginterrupt", EXTI_ADDRESS(interposed_siginterrupt)},
        {"sigset", EXTI_ADDRESS(interposed_sigset)},
        {"sigignore", EXTI_ADDRESS(interposed_sigignore)},
        {"raise", EXTI_ADDRESS(interposed_raise)},
        {"gsignal", EXTI_ADDRESS(interposed_raise)},
        {"kill", EXTI_ADDRESS(interposed_kill)},
        {"pidfd_send_signal", EXTI_ADDRESS(interposed_pidfd_send_signal)},
        {"syscall", EXTI_ADDRESS(interposed_syscall)},
        {"sigqueue", EXTI_ADDRESS(interposed_sigqueue)},
        {"pthread_kill", EXTI_ADDRESS(interposed_pthread_kill)},
        {"sigwait", EXTI_ADDRESS(interposed_sigwait)},
        {"sigwaitinfo", EXTI_ADDRESS(interposed_sigwaitinfo)},
        {"sigtimedwait", EXTI_ADDRESS(interposed_sigtimedwait)},
        {"signalfd", EXTI_ADDRESS(interposed_signalfd)},
    };

    return exti__redirect_find(calls, sizeof calls / sizeof *calls, symbol);
}
