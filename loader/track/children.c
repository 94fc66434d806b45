#define _GNU_SOURCE
#include "loader/track/children.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "loader/track/moment.h"
#include "loader/track/parked_signals.h"
#include "loader/track/process_stat.h"

/* What a child has sent may come to the dispatcher after the child has been waited for. */
#define MEMORY 1000000000u /* ns */

#define FREE 0
#define TAKEN (-1) /* is being written */

struct child {
    atomic_int pid; /* or FREE or TAKEN */
    _Atomic(const struct exti_ctx *) ctx;
    _Atomic(struct exti_signals *) signals;
    _Atomic uint64_t started, ended; /* exti__now; 0: it has not been waited for */
};

#define BLOCK 128

struct block {
    struct child children[BLOCK];
    _Atomic(struct block *) next; /* is never freed */
};

static struct block first;
/* The starts of children whose numbers are not known yet.  More than there is room for at once are
 * not noted, so what such children send at once comes from outside. */
#define STARTS 256
static _Atomic uint64_t starts[STARTS]; /* their numbers, from 1 on; 0: none */
static _Atomic uint64_t begun;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static int fork_error;

/* The next child in the table after `c`, from the first on for NULL. */
static struct child *next_of(struct block **b, struct child *c)
{
    if (!c) {
        *b = &first;
        return first.children;
    }
    if (++c < (*b)->children + BLOCK)
        return c;
    *b = atomic_load(&(*b)->next);
    return *b ? (*b)->children : NULL;
}

static struct child *find(pid_t pid)
{
    struct block *b;

    for (struct child *c = next_of(&b, NULL); c; c = next_of(&b, c))
        if (c->pid == pid)
            return c;
    return NULL;
}

/* Takes the child, if it is still this one. */
static bool take(struct child *c, pid_t pid)
{
    int expected = pid;

    return atomic_compare_exchange_strong(&c->pid, &expected, TAKEN);
}

/* `ended` may be later than `now`, which was asked for before. */
static bool is_forgotten(uint64_t ended, uint64_t now)
{
    return ended && ended + MEMORY < now;
}

static bool take_unused(struct child *c, uint64_t now)
{
    const pid_t pid = c->pid;

    return pid != TAKEN && (pid == FREE || is_forgotten(c->ended, now)) && take(c, pid);
}

static struct child *find_unused(uint64_t now)
{
    struct block *b, *last = &first, *more;

    for (struct child *c = next_of(&b, NULL); c; c = next_of(&b, c)) {
        if (take_unused(c, now))
            return c;
        last = b;
    }
    more = exti__calloc(1, sizeof *more);
    if (!more)
        return NULL;
    more->children[0].pid = TAKEN;
    for (b = NULL; !atomic_compare_exchange_strong(&last->next, &b, more); b = NULL)
        last = b;
    return more->children;
}

/* An older process may have had the number. */
static struct child *take_number(pid_t pid, uint64_t now)
{
    struct child *c = find(pid);

    return c && take(c, pid) ? c : find_unused(now);
}

void exti__child_add(struct exti_ctx *ctx, pid_t pid)
{
    const uint64_t now = exti__now();
    struct child *c = find(pid);

    if (c && c->ctx == ctx && !c->ended) {
        c->signals = atomic_load(&ctx->signals);
        return;
    }
    c = take_number(pid, now);
    if (!c)
        return;
    c->ctx = ctx;
    c->signals = atomic_load(&ctx->signals);
    c->started = now;
    c->ended = 0;
    c->pid = pid;
}

uint64_t exti__child_starts(void)
{
    const uint64_t number = atomic_fetch_add(&begun, 1) + 1;

    for (size_t i = 0; i < STARTS; i++) {
        uint64_t none = 0;

        if (!starts[i] && atomic_compare_exchange_strong(&starts[i], &none, number))
            break;
    }
    return number;
}

void exti__child_started(struct exti_ctx *ctx, pid_t pid, uint64_t number)
{
    if (ctx && pid > 0)
        exti__child_add(ctx, pid);
    for (size_t i = 0; i < STARTS; i++)
        if (starts[i] == number)
            starts[i] = 0;
}

void exti__child_ended(pid_t pid)
{
    struct child *c = find(pid);

    if (c)
        c->ended = exti__now();
}

size_t exti__children_of(const struct exti_ctx *ctx, pid_t *out, size_t room)
{
    size_t found = 0;
    struct block *b;

    for (struct child *c = next_of(&b, NULL); c; c = next_of(&b, c)) {
        const pid_t pid = c->pid;

        if (pid > 0 && c->ctx == ctx && !c->ended && found++ < room)
            out[found - 1] = pid;
    }
    return found;
}

void exti__children_signal(const struct exti_ctx *ctx, struct exti_signals *signals)
{
    struct block *b;

    for (struct child *c = next_of(&b, NULL); c; c = next_of(&b, c))
        if (c->pid > 0 && c->ctx == ctx)
            c->signals = signals;
}

/* Whether it has ended, and this call or another one has waited for it. */
static bool drop(pid_t pid)
{
    siginfo_t info = {.si_pid = 0};
    const int error = errno;
    const bool failed = syscall(SYS_waitid, P_PID, pid, &info, WEXITED | WNOHANG, NULL) != 0;
    const bool is_gone = failed ? errno == ECHILD : info.si_pid == pid;

    errno = error;
    return is_gone;
}

void exti__children_drop_ended(const struct exti_ctx *ctx)
{
    struct block *b;

    for (struct child *c = next_of(&b, NULL); c; c = next_of(&b, c)) {
        const pid_t pid = c->pid;

        if (pid > 0 && c->ctx == ctx && !c->ended && drop(pid))
            c->ended = exti__now();
    }
}

void exti__children_forget(const struct exti_ctx *ctx)
{
    struct block *b;

    for (struct child *c = next_of(&b, NULL); c; c = next_of(&b, c)) {
        const pid_t pid = c->pid;

        if (pid > 0 && c->ctx == ctx && take(c, pid))
            c->pid = FREE;
    }
}

/* ---- senders of signals ---- */

/* Each is the child of the next, and so on. */
#define GENERATIONS 16

static bool read_child(pid_t pid, struct exti_child *out)
{
    struct child *c = find(pid);

    if (!c || is_forgotten(c->ended, exti__now()))
        return false;
    *out = (struct exti_child){.signals = c->signals, .started = c->started};
    return c->pid == pid && out->signals;
}

uint64_t exti__children_begun(void)
{
    return begun;
}

bool exti__children_start(uint64_t number)
{
    for (size_t i = 0; i < STARTS; i++) {
        const uint64_t n = starts[i];

        if (n && n <= number)
            return true;
    }
    return false;
}

bool exti__children_may_send(const struct exti_ctx *ctx)
{
    const uint64_t now = exti__now();
    struct block *b;

    for (struct child *c = next_of(&b, NULL); c; c = next_of(&b, c))
        if (c->pid > 0 && c->ctx == ctx && !is_forgotten(c->ended, now))
            return true;
    return exti__children_start(begun);
}

/* Follows the parents. */
static enum exti_kinship find_by_parents(pid_t pid, struct exti_child *out)
{
    struct exti_process_stat stat;
    const pid_t self = getpid();

    for (int i = 0; i < GENERATIONS && pid > 1 && pid != self; i++) {
        if (read_child(pid, out))
            return EXTI_CHILD_STARTED;
        if (!exti__process_stat(pid, &stat))
            return EXTI_CHILD_NONE;
        if (stat.parent == self)
            return EXTI_CHILD_UNKNOWN;
        pid = stat.parent; /* 0: it has just been waited for */
    }
    return EXTI_CHILD_NONE;
}

/* A child becomes known before it can be waited for, and before its start is over: both may have
 * happened while its parents were looked for. */
enum exti_kinship exti__child_find(pid_t pid, struct exti_child *out)
{
    const enum exti_kinship kin = find_by_parents(pid, out);

    return kin != EXTI_CHILD_STARTED && read_child(pid, out) ? EXTI_CHILD_STARTED : kin;
}

/* ---- forks ---- */

/* They are the parent's. */
static void begin_child(void)
{
    struct block *b;

    for (struct child *c = next_of(&b, NULL); c; c = next_of(&b, c))
        c->pid = FREE;
    for (size_t i = 0; i < STARTS; i++)
        starts[i] = 0;
    exti__signals_forget_parked();
}

static void install_fork_handler(void)
{
    fork_error = pthread_atfork(NULL, NULL, begin_child);
}

int exti__children_survive_forks(void)
{
    pthread_once(&fork_once, install_fork_handler);
    return fork_error;
}
