#define _GNU_SOURCE /* wait4 */
#include "loader/interpose/child_calls.h"

#include <errno.h>
#include <poll.h>
#include <spawn.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loader/interpose/spawn.h"
#include "loader/track/address_map.h"
#include "loader/track/children.h"
#include "loader/track/redirects.h"
#include "loader/track/signal_hand_over.h"
#include "loader/track/signal_table.h"

#define CALL ((uintptr_t)__builtin_return_address(0))

/* ---- starting ---- */

static int interposed_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                            const posix_spawnattr_t *attributes, char *const argv[],
                            char *const envp[])
{
    return exti__spawn(exti__address_map_ctx(CALL), posix_spawn, pid, path, actions, attributes,
                       argv, envp);
}

/* vfork's child returns on its parent's stack, so what calls it must not return before the caller
 * does: it keeps the return address in a register, as the C library's own does.  The parent calls
 * vforked with the child and that address, the child vfork_child with the address. */
#if defined(__x86_64__) && defined(__LP64__)
#define HAS_VFORK 1
__asm__(".text\n"
        ".type exti__vfork, @function\n"
        "exti__vfork:\n"
        "    endbr64\n"
        "    pop %rdi\n"
        "    mov $58, %eax\n"
        "    syscall\n"
        "    push %rdi\n"
        "    test %rax, %rax\n"
        "    jnz 1f\n"
        "    sub $8, %rsp\n"
        "    call exti__vfork_child\n"
        "    add $8, %rsp\n"
        "    xor %eax, %eax\n"
        "    ret\n"
        "1:  mov %rdi, %rsi\n"
        "    mov %eax, %edi\n"
        "    sub $8, %rsp\n"
        "    call exti__vforked\n"
        "    add $8, %rsp\n"
        "    ret\n"
        ".size exti__vfork, . - exti__vfork\n");
#elif defined(__aarch64__)
#define HAS_VFORK 1
__asm__(".text\n"
        ".type exti__vfork, %function\n"
        "exti__vfork:\n"
        "    hint #34\n"        /* bti c */
        "    mov x0, #0x4111\n" /* CLONE_VFORK, CLONE_VM, SIGCHLD */
        "    mov x1, #0\n"
        "    mov x8, #220\n"
        "    svc #0\n"
        "    cbnz x0, 1f\n"
        "    stp x29, x30, [sp, #-16]!\n"
        "    mov x0, x30\n"
        "    bl exti__vfork_child\n"
        "    ldp x29, x30, [sp], #16\n"
        "    mov x0, #0\n"
        "    ret\n"
        "1:  stp x29, x30, [sp, #-16]!\n"
        "    mov x1, x30\n"
        "    bl exti__vforked\n"
        "    ldp x29, x30, [sp], #16\n"
        "    ret\n"
        ".size exti__vfork, . - exti__vfork\n");
#endif

#ifdef HAS_VFORK
pid_t exti__vfork(void);
pid_t exti__vforked(int pid, uintptr_t caller) __attribute__((used));
void exti__vfork_child(uintptr_t caller) __attribute__((used));

pid_t exti__vforked(int pid, uintptr_t caller)
{
    struct exti_ctx *ctx = exti__address_map_ctx(caller);

    if (pid < 0) {
        errno = -pid;
        return -1;
    }
    if (ctx)
        exti__child_add(ctx, pid); /* valgrind and qemu fork, so that the child cannot */
    return pid;
}

/* It has its parent's memory, and so notes itself there, before it can run a program that sends
 * signals; but signal actions of its own: those of the process. */
void exti__vfork_child(uintptr_t caller)
{
    struct exti_ctx *ctx = exti__address_map_ctx(caller);
    const struct exti_signals *s = ctx ? atomic_load(&ctx->signals) : NULL;

    if (ctx)
        exti__child_add(ctx, getpid());
    if (s)
        exti__signals_give_child(s);
}
#define VFORK EXTI_ADDRESS(exti__vfork)
#else
#define VFORK NULL
#endif

/* ---- waiting ---- */

#define CHILDREN_MAX 1024

/* A call of the wait family that may take several children. */
struct waiting {
    const struct exti_ctx *ctx;
    pid_t group; /* 0: any */
    int options;
    siginfo_t info; /* of the child that was found */
    struct rusage usage;
};

static bool has_ended(const siginfo_t *info)
{
    return info->si_code == CLD_EXITED || info->si_code == CLD_KILLED ||
           info->si_code == CLD_DUMPED;
}

static bool is_meant(const struct waiting *w, pid_t pid)
{
    return w->group == 0 || getpgid(pid) == w->group;
}

/* waitid(2), as the system has it: with what the child has used. */
static int wait_one(pid_t pid, int options, siginfo_t *info, struct rusage *usage)
{
    memset(info, 0, sizeof *info);
    if (syscall(SYS_waitid, P_PID, pid, info, options, usage))
        return errno;
    if (info->si_pid == pid && has_ended(info) && !(options & WNOWAIT))
        exti__child_ended(pid);
    return 0;
}

/* Looks at each child once.  0 if one was found, EAGAIN if not, ECHILD if there is none. */
static int look(struct waiting *w, const pid_t *pids, size_t n)
{
    bool any = false;

    for (size_t i = 0; i < n; i++) {
        int rc;

        if (!is_meant(w, pids[i]))
            continue;
        rc = wait_one(pids[i], w->options | WNOHANG, &w->info, &w->usage);
        if (!rc && w->info.si_pid == pids[i])
            return 0;
        if (rc == ECHILD)
            exti__child_ended(pids[i]); /* somebody else has waited for it */
        else if (rc)
            return rc;
        else
            any = true;
    }
    return any ? EAGAIN : ECHILD;
}

/* Until one has ended, a moment has passed, or a handler has run: EINTR. */
static int rest(const struct waiting *w, const pid_t *pids, size_t n)
{
    const bool stops = (w->options & (WSTOPPED | WCONTINUED)) != 0;
    struct pollfd fds[64];
    nfds_t count = 0;
    int timeout = stops ? 5 : 200, rc;

    for (size_t i = 0; i < n && count < sizeof fds / sizeof *fds; i++) {
        const int fd = (int)syscall(SYS_pidfd_open, pids[i], 0);

        if (fd >= 0)
            fds[count++] = (struct pollfd){.fd = fd, .events = POLLIN};
        else
            timeout = 5;
    }
    rc = poll(fds, count, timeout) < 0 ? errno : 0;
    while (count > 0)
        close(fds[--count].fd);
    return rc == EINTR ? EINTR : 0;
}

static int wait_for_any(struct waiting *w)
{
    pid_t pids[CHILDREN_MAX];
    int rc, interrupted = 0;

    do {
        size_t n = exti__children_of(w->ctx, pids, CHILDREN_MAX);

        if (n > CHILDREN_MAX)
            n = CHILDREN_MAX;
        rc = look(w, pids, n);
        if (rc != EAGAIN || (w->options & WNOHANG) || interrupted)
            break;
        if (n == 1 && w->group == 0)
            return wait_one(pids[0], w->options, &w->info, &w->usage);
        interrupted = rest(w, pids, n);
    } while (true);
    return rc == EAGAIN && interrupted ? interrupted : rc;
}

/* wait(2) */
static int status_of(const siginfo_t *info)
{
    switch (info->si_code) {
    case CLD_EXITED:
        return (info->si_status & 0xff) << 8;
    case CLD_KILLED:
        return info->si_status;
    case CLD_DUMPED:
        return info->si_status | 0x80;
    case CLD_CONTINUED:
        return 0xffff;
    default:
        return info->si_status << 8 | 0x7f;
    }
}

/* wait4 for more than one child. */
static pid_t wait_several(const struct exti_ctx *ctx, pid_t which, int *status, int options,
                          struct rusage *usage)
{
    struct waiting w = {.ctx = ctx,
                        .group = which == 0    ? getpgrp()
                                 : which == -1 ? 0
                                               : -which,
                        .options = WEXITED | (options & ~WUNTRACED) |
                                   (options & WUNTRACED ? WSTOPPED : 0)};
    const int rc = wait_for_any(&w);

    if (rc == EAGAIN)
        return 0;
    if (rc) {
        errno = rc;
        return -1;
    }
    if (status)
        *status = status_of(&w.info);
    if (usage)
        *usage = w.usage;
    return w.info.si_pid;
}

static pid_t wait_as_system(pid_t which, int *status, int options, struct rusage *usage)
{
    int mine = 0;
    pid_t pid = wait4(which, &mine, options, usage);

    if (pid > 0 && (WIFEXITED(mine) || WIFSIGNALED(mine)))
        exti__child_ended(pid);
    if (pid > 0 && status)
        *status = mine;
    return pid;
}

static pid_t wait_by(uintptr_t caller, pid_t which, int *status, int options, struct rusage *usage)
{
    const struct exti_ctx *ctx = exti__address_map_ctx(caller);
    const bool several = which <= 0 && ctx && !(options & ~(WNOHANG | WUNTRACED | WCONTINUED));
    pid_t pid = several ? wait_several(ctx, which, status, options, usage)
                        : wait_as_system(which, status, options, usage);

    if (pid > 0)
        exti__signals_settle();
    return pid;
}

static pid_t interposed_wait(int *status)
{
    return wait_by(CALL, -1, status, 0, NULL);
}

static pid_t interposed_waitpid(pid_t which, int *status, int options)
{
    return wait_by(CALL, which, status, options, NULL);
}

static pid_t interposed_wait3(int *status, int options, struct rusage *usage)
{
    return wait_by(CALL, -1, status, options, usage);
}

static pid_t interposed_wait4(pid_t which, int *status, int options, struct rusage *usage)
{
    return wait_by(CALL, which, status, options, usage);
}

/* waitid(2) for one child, or for what is no copy's. */
static int find_as_system(idtype_t kind, id_t id, siginfo_t *out, int options)
{
    int rc = waitid(kind, id, out, options);

    if (!rc && out->si_pid && has_ended(out) && !(options & WNOWAIT))
        exti__child_ended(out->si_pid);
    return rc;
}

/* waitid(2) for more than one child. */
static int find_several(const struct exti_ctx *ctx, idtype_t kind, id_t id, siginfo_t *out,
                        int options)
{
    struct waiting w = {.ctx = ctx,
                        .group = kind == P_ALL ? 0
                                 : id          ? (pid_t)id
                                               : getpgrp(),
                        .options = options};
    const int rc = wait_for_any(&w);

    if (rc && rc != EAGAIN) {
        errno = rc;
        return -1;
    }
    if (!rc)
        *out = w.info;
    return 0;
}

static int interposed_waitid(idtype_t kind, id_t id, siginfo_t *out, int options)
{
    const struct exti_ctx *ctx = exti__address_map_ctx(CALL);
    siginfo_t info = {0};
    const int rc = ctx && (kind == P_ALL || kind == P_PGID)
                       ? find_several(ctx, kind, id, &info, options)
                       : find_as_system(kind, id, &info, options);

    if (!rc && info.si_pid)
        exti__signals_settle();
    if (!rc && out)
        *out = info;
    return rc;
}

/* ---- looking them up ---- */

void *exti__child_call(const struct exti_ctx *ctx, const char *symbol)
{
    const struct exti_redirect calls[] = {
        {"posix_spawn", EXTI_ADDRESS(interposed_spawn)},
        {"vfork", VFORK},
        {"__vfork", VFORK},
        {"wait", EXTI_ADDRESS(interposed_wait)},
        {"__wait", EXTI_ADDRESS(interposed_wait)},
        {"waitpid", EXTI_ADDRESS(interposed_waitpid)},
        {"__waitpid", EXTI_ADDRESS(interposed_waitpid)},
        {"wait3", EXTI_ADDRESS(interposed_wait3)},
        {"wait4", EXTI_ADDRESS(interposed_wait4)},
        {"waitid", EXTI_ADDRESS(interposed_waitid)},
    };

    if (ctx->flags & EXTI_CTX_PROCESS_SIGNALS)
        return NULL;
    return exti__redirect_find(calls, sizeof calls / sizeof *calls, symbol);
}
