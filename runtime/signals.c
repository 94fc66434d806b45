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

/* By the name that its copy has too. */
static int is_libpython(const void *address)
{
    const char *slash;
    Dl_info info;

    if (!dladdr(address, &info) || !info.dli_fname)
        return 0;
    slash = strrchr(info.dli_fname, '/');
    return strncmp(slash ? slash + 1 : info.dli_fname, "libpython", 9) == 0;
}

/* Whether what native code wants to do with the signal is taken for done, and not done.  These ask
 * the process to end, and whether it does is not a library's part; but Rust's packages set handlers
 * for them as they are imported and panic where they cannot.  Of others a library needs the handler
 * it sets, and has to know.  libpython refuses in Python's words. */
static int is_let_be(int sig, const void *caller)
{
    return (sig == SIGINT || sig == SIGTERM || sig == SIGHUP) && !is_libpython(caller);
}

/* The flags of SIG_DFL and SIG_IGN mean nothing. */
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
    if (!is_same_action(act, &now) && !is_let_be(sig, __builtin_return_address(0))) {
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
    return now.sa_handler == h || is_let_be(sig, __builtin_return_address(0)) ? now.sa_handler
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

/* signal(3) has several names in glibc, by feature macros and by history.  POSIX allows the cast to
 * void *. */
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
