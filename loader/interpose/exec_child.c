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
    struct exti_signals *signals; /* NULL: the process's */
    sigset_t mask, ignored;
    volatile int error; /* of the child, which has our memory */
};

/* In the parent. */
static void note_ignored(struct launch *l)
{
    const struct exti_signals *s = l->signals;

    sigemptyset(&l->ignored);
    for (int sig = 1; sig <= EXTI_SIGNAL_MAX; sig++) {
        struct sigaction now = {0};

        if (s ? exti__signal_action(s, sig).handler == SIG_IGN
              : sigaction(sig, NULL, &now) == 0 && now.sa_handler == SIG_IGN)
            sigaddset(&l->ignored, sig);
    }
}

/* execve(2): what the context ignores stays ignored, and all else gets the default.  No handler may
 * run in the child, whose memory it shares. */
static void reset_signals(const sigset_t *ignored)
{
    for (int sig = 1; sig <= EXTI_SIGNAL_MAX; sig++) {
        struct sigaction now, next = {.sa_handler = SIG_DFL};

        if (sigaction(sig, NULL, &now))
            continue; /* the C library's own */
        if (sigismember(ignored, sig) == 1)
            next.sa_handler = SIG_IGN;
        if (now.sa_handler != next.sa_handler)
            sigaction(sig, &next, NULL);
    }
}

static _Noreturn void run_in_child(struct launch *l)
{
    reset_signals(&l->ignored);
    pthread_sigmask(SIG_SETMASK, &l->mask, NULL);
    l->run(l->what);
    l->error = errno;
    _exit(127);
}

/* ---- its signals ---- */

static _Thread_local volatile pid_t child; /* that the thread waits for; 0: none */

/* What somebody sends to the program by its process id is for the child, and what the context's
 * alarm(2) sends.  The child gets what a terminal sends by itself. */
static void pass_on(int sig, siginfo_t *info, void *context)
{
    const bool sent = info->si_code == SI_USER || info->si_code == SI_QUEUE;
    const int error = errno;

    (void)context;
    if (child && (sig == SIGALRM || (sent && info->si_pid != getpid())))
        kill(child, sig);
    errno = error;
}

#define PASSED 10

static const int passed[PASSED] = {SIGHUP,  SIGINT,  SIGQUIT, SIGUSR1, SIGUSR2,
                                   SIGALRM, SIGTERM, SIGPIPE, SIGIO,   SIGWINCH};

/* They wait while the thread blocks them, whichever thread of the process gets them. */
static void pass_signals_on(struct exti_signals *s, struct exti_signal_former former[PASSED])
{
    const struct sigaction act = {.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO | SA_RESTART};

    for (size_t i = 0; s && i < PASSED; i++)
        exti__signal_replace(s, passed[i], &act, &former[i]);
}

static void keep_signals(struct exti_signals *s, const struct exti_signal_former former[PASSED])
{
    for (size_t i = 0; s && i < PASSED; i++)
        exti__signal_put_back(s, passed[i], &former[i]);
}

/* ---- the parent ---- */

/* Once it is reaped its number may be another's, and nothing is to be sent there. */
static int wait_for(pid_t pid)
{
    siginfo_t ended;
    int status;

    while (waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT) < 0 && errno == EINTR)
        ;
    child = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return 1; /* somebody else has waited for it, or nobody is to */
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Sets *out to a child that runs the program, and gets its signals.  0 or an errno value. */
static int start_child(pid_t *out, struct launch *l)
{
    struct exti_signal_former former[PASSED];
    sigset_t all;
    pid_t pid;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &l->mask);
    note_ignored(l);
    pass_signals_on(l->signals, former);
    pid = vfork();
    if (pid == 0)
        run_in_child(l);
    error = pid < 0 ? errno : l->error;
    if (error)
        keep_signals(l->signals, former);
    else
        child = pid;
    pthread_sigmask(SIG_SETMASK, &l->mask, NULL);
    if (pid > 0 && error)
        wait_for(pid);
    *out = pid;
    return error;
}

int exti__exec_for(uintptr_t call, int (*run)(const void *what), const void *what)
{
    struct exti_ctx *ctx = exti__context_ending(call);
    struct launch l = {.run = run, .what = what};
    struct exti_call c;
    int error, cancel;
    pid_t pid;

    if (!ctx)
        return run(what);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    exti__context_hold(&c, ctx);
    l.signals = exti__signals_of(ctx);
    error = start_child(&pid, &l);
    exti__call_end(&c);
    if (!error)
        exti__context_cut_off(ctx, wait_for(pid));
    exti__context_goes_on(ctx);
    pthread_setcancelstate(cancel, NULL);
    errno = error;
    return -1;
}
