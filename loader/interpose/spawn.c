#include "loader/interpose/spawn.h"

#include <errno.h>
#include <pthread.h>

#include "loader/track/children.h"
#include "loader/track/signal_dispatch.h"

/* A fault is its thread's alone, and ends the process where it is blocked. */
static void block_signals(sigset_t *before)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigset_t set;

    sigfillset(&set);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(&set, faults[i]);
    pthread_sigmask(SIG_BLOCK, &set, before);
}

struct exti_start exti__start_begin(void)
{
    struct exti_start start;

    block_signals(&start.signals);
    start.number = exti__child_starts();
    return start;
}

void exti__start_end(const struct exti_start *start, struct exti_ctx *ctx, pid_t pid)
{
    const int error = errno;

    if (pid) {
        exti__child_started(ctx, pid, start->number);
        exti__signals_unpark();
    }
    pthread_sigmask(SIG_SETMASK, &start->signals, NULL);
    errno = error;
}

/* POSIX: without the flag a child has the signals blocked that its parent has. */
static int set_mask(posix_spawnattr_t *a, const sigset_t *signals)
{
    short flags;
    int rc = posix_spawnattr_getflags(a, &flags);

    if (!rc && !(flags & POSIX_SPAWN_SETSIGMASK))
        rc = posix_spawnattr_setsigmask(a, signals);
    return rc ? rc : posix_spawnattr_setflags(a, (short)(flags | POSIX_SPAWN_SETSIGMASK));
}

int exti__spawn(struct exti_ctx *ctx, exti_spawn spawn, pid_t *pid, const char *program,
                const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
                char *const argv[], char *const envp[])
{
    posix_spawnattr_t own;
    struct exti_start start;
    pid_t started = 0;
    int rc = 0;

    if (!ctx)
        return spawn(pid, program, actions, attributes, argv, envp);
    if (attributes)
        own = *attributes;
    else
        rc = posix_spawnattr_init(&own);
    if (rc)
        return rc;
    start = exti__start_begin();
    rc = set_mask(&own, &start.signals);
    if (!rc)
        rc = spawn(&started, program, actions, &own, argv, envp);
    exti__start_end(&start, ctx, rc ? -1 : started);
    if (!rc && pid)
        *pid = started;
    return rc;
}
