/* The C library's own start the shell with the process's environment, so these start it
 * themselves. */
#define _GNU_SOURCE /* pipe2 */
#include "loader/interpose/shell_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <paths.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "loader/interpose/spawn.h"
#include "loader/track/address_map.h"
#include "loader/track/children.h"
#include "loader/track/fork_lock.h"
#include "loader/track/redirects.h"
#include "loader/track/signal_hand_over.h"
#include "loader/track/signal_table.h"
#include "loader/track/surroundings.h"

#define OWN exti__environment_at((uintptr_t)__builtin_return_address(0))

/* Guards what is below.  Taken with no lock of the library held; none is taken under it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static int fork_error;

static unsigned waiting; /* threads in system(), of contexts that share the process's signals */
static struct sigaction before[2];
static const int ignored[2] = {SIGINT, SIGQUIT};

struct pipe_stream {
    FILE *stream;
    pid_t pid;
    struct pipe_stream *next;
};
static struct pipe_stream *streams;

static void lock_shells(void)
{
    exti__fork_lock(&lock);
}

static void unlock_shells(void)
{
    exti__fork_unlock(&lock);
}

/* In the child no thread waits. */
static void renew_in_child(void)
{
    for (int i = 0; waiting && i < 2; i++)
        sigaction(ignored[i], &before[i], NULL);
    waiting = 0;
    exti__fork_unlock(&lock);
}

static void install_shell_fork_handlers(void)
{
    fork_error = pthread_atfork(lock_shells, unlock_shells, renew_in_child);
}

int exti__shell_calls_survive_forks(void)
{
    pthread_once(&fork_once, install_shell_fork_handlers);
    return fork_error;
}

/* What starts the shell. */
struct caller {
    struct exti_ctx *ctx;
    const struct exti_environment *environment;
};

static int start_shell(pid_t *pid, const char *command, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attributes, const struct caller *caller)
{
    char *const words[] = {(char *)"sh", (char *)"-c", (char *)"--", (char *)command, NULL};

    return exti__spawn(caller->ctx, posix_spawn, pid, _PATH_BSHELL, actions, attributes, words,
                       caller->environment->list);
}

static int await_child(pid_t pid)
{
    int status;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    exti__child_ended(pid);
    exti__signals_settle();
    return status;
}

/* ---- system ---- */

/* POSIX: a terminal's interrupt is for the command, not for who waits for it. */
static void begin_waiting(void)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};

    exti__fork_lock(&lock);
    for (int i = 0; !waiting && i < 2; i++)
        sigaction(ignored[i], &ignore, &before[i]);
    waiting++;
    exti__fork_unlock(&lock);
}

static void end_waiting(void)
{
    exti__fork_lock(&lock);
    waiting--;
    for (int i = 0; !waiting && i < 2; i++)
        sigaction(ignored[i], &before[i], NULL);
    exti__fork_unlock(&lock);
}

/* What the command is not to ignore. */
static void find_own_signals(struct exti_signals *s, sigset_t *own)
{
    struct sigaction now;

    sigemptyset(own);
    for (int i = 0; i < 2; i++) {
        now = before[i];
        if (s)
            exti__signal_set(s, ignored[i], NULL, &now);
        if (now.sa_handler != SIG_IGN)
            sigaddset(own, ignored[i]);
    }
}

/* Starts the command with the signals that the caller had. */
static int start_command(pid_t *pid, const char *command, const sigset_t *mask, const sigset_t *own,
                         const struct caller *caller)
{
    posix_spawnattr_t attributes;
    int rc = posix_spawnattr_init(&attributes);

    if (rc)
        return rc;
    posix_spawnattr_setsigdefault(&attributes, own);
    posix_spawnattr_setsigmask(&attributes, mask);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    rc = start_shell(pid, command, NULL, &attributes, caller);
    posix_spawnattr_destroy(&attributes);
    return rc;
}

static int interposed_system(const char *command)
{
    struct exti_environment *e = OWN;
    struct exti_ctx *ctx = exti__address_map_ctx((uintptr_t)__builtin_return_address(0));
    const struct caller caller = {ctx, e};
    struct exti_signals *s = ctx ? exti__signals_of(ctx) : NULL;
    int status = 127 << 8; /* of a shell that could not be started */
    sigset_t children, mask, own;
    pid_t pid;

    if (!e || !command)
        return system(command);
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    if (s)
        exti__signals_count_command(ctx, s, 1);
    else
        begin_waiting();
    find_own_signals(s, &own);
    pthread_sigmask(SIG_BLOCK, &children, &mask);
    if (!start_command(&pid, command, &mask, &own, &caller))
        status = await_child(pid);
    if (s)
        exti__signals_count_command(ctx, s, -1);
    else
        end_waiting();
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    return status;
}

/* ---- popen ---- */

/* Starts the shell with `end` of a pipe as its standard output or input. */
static int start_on_pipe(pid_t *pid, const char *command, int end, int as,
                         const struct caller *caller)
{
    posix_spawn_file_actions_t actions;
    int rc = posix_spawn_file_actions_init(&actions);

    if (rc)
        return rc;
    rc = posix_spawn_file_actions_adddup2(&actions, end, as);
    if (!rc)
        rc = start_shell(pid, command, &actions, NULL, caller);
    posix_spawn_file_actions_destroy(&actions);
    return rc;
}

/* No command of a later call gets the caller's end, as POSIX has it, nor any other program. */
static int open_pipe(struct pipe_stream *s, const char *command, bool reads,
                     const struct caller *caller)
{
    int ends[2], rc;

    if (pipe2(ends, O_CLOEXEC))
        return errno;
    s->stream = fdopen(ends[!reads], reads ? "r" : "w");
    rc = s->stream ? start_on_pipe(&s->pid, command, ends[reads], reads, caller) : errno;
    close(ends[reads]);
    if (!rc)
        return 0;
    if (s->stream)
        fclose(s->stream);
    else
        close(ends[!reads]);
    return rc;
}

/* Takes the stream off the list. */
static struct pipe_stream *find_stream(const FILE *stream)
{
    struct pipe_stream **link = &streams, *found;

    exti__fork_lock(&lock);
    while (*link && (*link)->stream != stream)
        link = &(*link)->next;
    found = *link;
    if (found)
        *link = found->next;
    exti__fork_unlock(&lock);
    return found;
}

static FILE *interposed_popen(const char *command, const char *mode)
{
    struct exti_environment *e = OWN;
    const struct caller caller = {exti__address_map_ctx((uintptr_t)__builtin_return_address(0)), e};
    struct pipe_stream *s;
    int rc;

    if (!e || (*mode != 'r' && *mode != 'w'))
        return popen(command, mode);
    s = exti__calloc(1, sizeof *s);
    rc = s ? open_pipe(s, command, *mode == 'r', &caller) : ENOMEM;
    if (rc) {
        exti__free(s);
        errno = rc;
        return NULL;
    }
    /* A program may have closed one by fclose. */
    exti__free(find_stream(s->stream));
    exti__fork_lock(&lock);
    s->next = streams;
    streams = s;
    exti__fork_unlock(&lock);
    return s->stream;
}

static int interposed_pclose(FILE *stream)
{
    struct pipe_stream *s = find_stream(stream);
    pid_t pid;

    if (!s)
        return pclose(stream);
    pid = s->pid;
    exti__free(s);
    fclose(stream);
    return await_child(pid);
}

/* ---- looking them up ---- */

void *exti__shell_call(const struct exti_ctx *ctx, const char *symbol)
{
    const struct exti_redirect calls[] = {
        {"system", EXTI_ADDRESS(interposed_system)},
        {"popen", EXTI_ADDRESS(interposed_popen)},
        {"pclose", EXTI_ADDRESS(interposed_pclose)},
    };

    if (!ctx->surroundings || !ctx->surroundings->environment)
        return NULL;
    return exti__redirect_find(calls, sizeof calls / sizeof *calls, symbol);
}
