#define _GNU_SOURCE /* dladdr */
#include "runtime/signals.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

typedef void (*handler)(int);

static pid_t host;
static pthread_once_t host_once = PTHREAD_ONCE_INIT;

static void set_host(void)
{
    host = getpid();
}

static int is_host(void)
{
    return getpid() == host;
}

static handler refuse_handler(void)
{
    errno = EPERM;
    return SIG_ERR;
}

/* By the file name, which a copy's name begins with too. */
static int is_libpython(const void *address)
{
    const char *slash;
    Dl_info info;

    if (!dladdr(address, &info) || !info.dli_fname)
        return 0;
    slash = strrchr(info.dli_fname, '/');
    return strncmp(slash ? slash + 1 : info.dli_fname, "libpython", 9) == 0;
}

/* Whether to report success to native code without changing anything.  SIGINT, SIGTERM and
 * SIGHUP ask the process to end, which is not a library's business; but Rust packages set
 * handlers for them when imported, and panic if they cannot.  A library needs the handlers it
 * sets for other signals, so there it gets the error.  libpython gets the error for all, and
 * raises it in Python. */
static int pretends_success(int sig, const void *caller)
{
    return (sig == SIGINT || sig == SIGTERM || sig == SIGHUP) && !is_libpython(caller);
}

/* SIG_DFL and SIG_IGN have no meaningful flags. */
static int is_same_action(const struct sigaction *a, const struct sigaction *b)
{
    if (a->sa_handler != b->sa_handler)
        return 0;
    return a->sa_handler == SIG_DFL || a->sa_handler == SIG_IGN || a->sa_flags == b->sa_flags;
}

static int guarded_sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
    struct sigaction now;

    if (!act || !is_host())
        return sigaction(sig, act, old);
    if (sigaction(sig, NULL, &now) != 0)
        return -1;
    if (!is_same_action(act, &now) && !pretends_success(sig, __builtin_return_address(0))) {
        errno = EPERM;
        return -1;
    }
    if (old)
        *old = now;
    return 0;
}

static handler guarded_signal(int sig, handler h)
{
    struct sigaction now;

    if (!is_host())
        return signal(sig, h);
    if (sigaction(sig, NULL, &now) != 0)
        return SIG_ERR;
    return now.sa_handler == h || pretends_success(sig, __builtin_return_address(0))
               ? now.sa_handler
               : refuse_handler();
}

static int guarded_siginterrupt(int sig, int flag)
{
    struct sigaction now;

    if (sigaction(sig, NULL, &now) != 0)
        return -1;
    if (!is_host()) {
        now.sa_flags = flag ? now.sa_flags & ~SA_RESTART : now.sa_flags | SA_RESTART;
        return sigaction(sig, &now, NULL);
    }
    errno = EPERM;
    return -1;
}

/* glibc has several names for signal(3), because of feature macros and history.  POSIX allows the
 * cast to void *. */
static const struct exti_redirect redirects[] = {
    {"sigaction", (void *)guarded_sigaction},  {"__sigaction", (void *)guarded_sigaction},
    {"signal", (void *)guarded_signal},        {"bsd_signal", (void *)guarded_signal},
    {"ssignal", (void *)guarded_signal},       {"sysv_signal", (void *)guarded_signal},
    {"__sysv_signal", (void *)guarded_signal}, {"siginterrupt", (void *)guarded_siginterrupt},
};

const struct exti_redirect *pyrt_signal_redirects(size_t *count)
{
    pthread_once(&host_once, set_host);
    *count = sizeof redirects / sizeof *redirects;
    return redirects;
}
