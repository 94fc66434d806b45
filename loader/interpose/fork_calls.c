#define _GNU_SOURCE /* daemon */
#include "loader/interpose/fork_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loader/interpose/spawn.h"
#include "loader/track/address_map.h"
#include "loader/track/calls.h"
#include "loader/track/context_end.h"
#include "loader/track/fork_handlers.h"
#include "loader/track/redirects.h"

#define CALL __builtin_return_address(0)

/* The C library's; those that some lack are weak. */
struct termios;
struct winsize;
extern int forkpty(int *terminal, char *name, const struct termios *settings,
                   const struct winsize *size) __attribute__((weak));
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                             void *library) __attribute__((weak));

/* ---- forks ----------------------------------------------------------------------------------- */

/* Makes the next fork of this thread the caller's context's; the result is for end_fork. */
static const struct exti_ctx *begin_fork(const void *call)
{
    struct exti_module m;

    return exti__fork_handlers_for(exti__address_map_find((uintptr_t)call, &m) ? m.ctx : NULL);
}

static void end_fork(const struct exti_ctx *before)
{
    exti__fork_handlers_for(before);
}

static pid_t interposed_fork(void)
{
    struct exti_ctx *ctx = exti__address_map_ctx((uintptr_t)CALL);
    const struct exti_ctx *before = begin_fork(CALL);
    const struct exti_start start = exti__start_begin();
    pid_t pid;

    pid = fork();
    exti__start_end(&start, ctx, pid);
    end_fork(before);
    return pid;
}

static int interposed_forkpty(int *terminal, char *name, const struct termios *settings,
                              const struct winsize *size)
{
    struct exti_ctx *ctx = exti__address_map_ctx((uintptr_t)CALL);
    const struct exti_ctx *before = begin_fork(CALL);
    const struct exti_start start = exti__start_begin();
    int pid;

    pid = forkpty(terminal, name, settings, size);
    exti__start_end(&start, ctx, pid);
    end_fork(before);
    return pid;
}

/* The rest of daemon(3), in the child. */
static int leave_session(int keep_directory, int keep_files)
{
    int null;

    if (setsid() < 0 || (!keep_directory && chdir("/")))
        return -1;
    null = keep_files ? -1 : open("/dev/null", O_RDWR);
    if (keep_files || null < 0)
        return keep_files ? 0 : -1;
    for (int fd = 0; fd <= 2; fd++)
        dup2(null, fd);
    if (null > 2)
        close(null);
    return 0;
}

/* Forks twice, so that nobody has to wait for the grandchild: 0 there, 1 in the parent, or -1. */
static int fork_away(void)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        pid = fork();
        if (pid == 0)
            return 0;
        _exit(pid < 0 ? errno : 0);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (pid > 0 && status == 0)
        return 1;
    if (pid > 0)
        errno = WIFEXITED(status) ? WEXITSTATUS(status) : EAGAIN;
    return -1;
}

/* The parent ends by _exit(0), or the context there. */
static int interposed_daemon(int keep_directory, int keep_files)
{
    struct exti_ctx *ending = exti__context_ending((uintptr_t)CALL);
    const struct exti_ctx *before = begin_fork(CALL);
    int rc = ending ? fork_away() : daemon(keep_directory, keep_files);

    end_fork(before);
    if (!ending)
        return rc;
    if (rc > 0)
        exti__context_cut_off(ending, 0);
    exti__context_goes_on(ending);
    return rc < 0 ? rc : leave_session(keep_directory, keep_files);
}

/* ---- handlers -------------------------------------------------------------------------------- */

/* Adds the handlers to the context of one of these addresses.  -1: they are no copy's. */
static int add_handlers(const uintptr_t addresses[5], void (*prepare)(void), void (*parent)(void),
                        void (*child)(void))
{
    struct exti_module m;
    struct exti_call call;
    int rc;

    for (int i = 0; i < 5; i++) {
        if (!addresses[i] || !exti__call_begin_note(&call, addresses[i], &m))
            continue;
        rc = exti__fork_handlers_add(&m, prepare, parent, child);
        exti__call_end(&call);
        return rc;
    }
    return -1;
}

/* What libc_nonshared.a's pthread_atfork calls, with the library that it is linked into. */
static int interposed_register_atfork(void (*prepare)(void), void (*parent)(void),
                                      void (*child)(void), void *library)
{
    const uintptr_t addresses[5] = {(uintptr_t)library, (uintptr_t)prepare, (uintptr_t)parent,
                                    (uintptr_t)child, (uintptr_t)CALL};
    int rc = add_handlers(addresses, prepare, parent, child);

    return rc < 0 ? __register_atfork(prepare, parent, child, library) : rc;
}

static int interposed_pthread_atfork(void (*prepare)(void), void (*parent)(void),
                                     void (*child)(void))
{
    const uintptr_t addresses[5] = {(uintptr_t)prepare, (uintptr_t)parent, (uintptr_t)child,
                                    (uintptr_t)CALL, 0};
    int rc = add_handlers(addresses, prepare, parent, child);

    return rc < 0 ? pthread_atfork(prepare, parent, child) : rc;
}

/* ---- looking them up ------------------------------------------------------------------------- */

void *exti__fork_call(const char *symbol)
{
    const struct exti_redirect calls[] = {
        {"fork", EXTI_ADDRESS(interposed_fork)},
        {"__fork", EXTI_ADDRESS(interposed_fork)},
        {"forkpty", forkpty ? EXTI_ADDRESS(interposed_forkpty) : NULL},
        {"daemon", EXTI_ADDRESS(interposed_daemon)},
        {"pthread_atfork", EXTI_ADDRESS(interposed_pthread_atfork)},
        {"__register_atfork", __register_atfork ? EXTI_ADDRESS(interposed_register_atfork) : NULL},
    };

    return exti__redirect_find(calls, sizeof calls / sizeof *calls, symbol);
}
