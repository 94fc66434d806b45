/* By vfork: a fork would run the fork handlers of the context, and its end could not be seen from
 * the end of a pipe, which other children may have inherited. */
#define _GNU_SOURCE /* vfork */
#include "loader/interpose/exec_child.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loader/track/context_end.h"
#include "loader/track/signal_table.h"

/* ---- the child ---- */

struct launch {
    int (*run)(const void *what);
    const void *what;
    const struct exti_signals *signals; /* NULL: the process's */
    sigset_t mask;
    volatile int error; /* of the child, which has our memory */
};

/* execve(2): what the context ignores stays ignored, and all else gets the default.  No handler may
 * run in the child, whose memory it shares. */
static void reset_signals(const struct exti_signals *s)
{
    for (int sig = 1; sig <= EXTI_SIGNAL_MAX; sig++) {
        struct sigaction now, next = {.sa_handler = SIG_DFL};

        if (sigaction(sig, NULL, &now))
            continue; /* the C library's own */
        if (s ? exti__signal_action(s, sig).handler == SIG_IGN : now.sa_handler == SIG_IGN)
            next.sa_handler = SIG_IGN;
        if (now.sa_handler != next.sa_handler)
            sigaction(sig, &next, NULL);
    }
}

static _Noreturn void run_in_child(struct launch *l)
{
    reset_signals(l->signals);
    pthread_sigmask(SIG_SETMASK, &l->mask, NULL);
    l->run(l->what);
    l->error = errno;
    _exit(127);
}

static int wait_for(pid_t pid)
{
    int status;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return 1; /* somebody else has waited for it, or nobody is to */
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Sets *out to a child that runs the program.  0 or an errno value. */
static int start_child(pid_t *out, struct launch *l)
{
    sigset_t all;
    pid_t pid;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &l->mask);
    pid = vfork();
    if (pid == 0)
        run_in_child(l);
    error = pid < 0 ? errno : l->error;
    pthread_sigmask(SIG_SETMASK, &l->mask, NULL);
    if (pid > 0 && error)
        wait_for(pid);
    *out = pid;
    return error;
}

/* ---- its signals ---- */

static _Thread_local volatile pid_t child; /* that the thread waits for */

/* What somebody sends to the program by its process id is for the child.  What a terminal sends
 * that has, too. */
static void pass_on(int sig, siginfo_t *info, void *context)
{
    const bool sent = info->si_code == SI_USER || info->si_code == SI_QUEUE;
    const int error = errno;

    (void)context;
    if (child && sent && info->si_pid != getpid())
        kill(child, sig);
    errno = error;
}

static void pass_signals_on(struct exti_signals *s, pid_t pid)
{
    static const int passed[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGUSR1, SIGUSR2,
                                 SIGALRM, SIGTERM, SIGPIPE, SIGIO,   SIGWINCH};
    const struct sigaction act = {.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO | SA_RESTART};

    child = pid;
    for (size_t i = 0; s && i < sizeof passed / sizeof *passed; i++)
        exti__signal_set(s, passed[i], &act, NULL);
}

/* ---- both ---- */

int exti__exec_for(uintptr_t call, int (*run)(const void *what), const void *what)
{
    struct exti_ctx *ctx = exti__context_ending(call);
    struct launch l = {.run = run, .what = what};
    struct exti_signals *s;
    pid_t pid;
    int error;

    if (!ctx)
        return run(what);
    s = exti__signals_of(ctx);
    l.signals = s;
    error = start_child(&pid, &l);
    if (error) {
        errno = error;
        return -1;
    }
    pass_signals_on(s, pid);
    exti__context_cut_off(ctx, wait_for(pid));
}
