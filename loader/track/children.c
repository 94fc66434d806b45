#define _GNU_SOURCE
#include "loader/track/children.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

struct child {
    const struct exti_ctx *ctx;
    pid_t pid;
};

/* Guards the table.  Signals are blocked meanwhile: a handler of SIGCHLD comes here.  Innermost. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static int fork_error;
static struct child *children;
static size_t count, room;

static void lock_children(sigset_t *signals)
{
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, signals);
    pthread_mutex_lock(&lock);
}

static void unlock_children(const sigset_t *signals)
{
    pthread_mutex_unlock(&lock);
    pthread_sigmask(SIG_SETMASK, signals, NULL);
}

static bool grow(void)
{
    const size_t larger = room ? room * 2 : 64;
    struct child *grown = exti__realloc(children, larger * sizeof *grown);

    if (!grown)
        return false;
    children = grown;
    room = larger;
    return true;
}

void exti__child_started(const struct exti_ctx *ctx, pid_t pid)
{
    sigset_t signals;

    lock_children(&signals);
    if (count < room || grow())
        children[count++] = (struct child){ctx, pid};
    unlock_children(&signals);
}

void exti__child_ended(pid_t pid)
{
    sigset_t signals;

    lock_children(&signals);
    for (size_t i = 0; i < count;)
        if (children[i].pid == pid)
            children[i] = children[--count];
        else
            i++;
    unlock_children(&signals);
}

size_t exti__children_of(const struct exti_ctx *ctx, pid_t *out, size_t n)
{
    size_t found = 0;
    sigset_t signals;

    lock_children(&signals);
    for (size_t i = 0; i < count; i++)
        if (children[i].ctx == ctx && found++ < n)
            out[found - 1] = children[i].pid;
    unlock_children(&signals);
    return found;
}

void exti__children_forget(const struct exti_ctx *ctx)
{
    sigset_t signals;

    lock_children(&signals);
    for (size_t i = 0; i < count;)
        if (children[i].ctx == ctx)
            children[i] = children[--count];
        else
            i++;
    unlock_children(&signals);
}

/* ---- senders of signals ---- */

/* Each is the child of the next, and so on. */
#define GENERATIONS 16

/* "/proc/PID/stat", by what a signal handler may call. */
static void put_stat_path(char path[32], pid_t pid)
{
    char digits[12];
    size_t n = 0, at = strlen("/proc/");

    for (; pid > 0; pid /= 10)
        digits[n++] = (char)('0' + pid % 10);
    memcpy(path, "/proc/", at);
    while (n)
        path[at++] = digits[--n];
    memcpy(path + at, "/stat", sizeof "/stat");
}

/* proc(5): the number of the parent is the second field behind the name, which is in brackets.  0:
 * it is not known. */
static pid_t parent_of(pid_t pid)
{
    char path[32], text[256];
    const char *p;
    ssize_t n;
    pid_t parent = 0;
    int fd;

    put_stat_path(path, pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    p = strrchr(text, ')');
    for (p = p && strlen(p) > 4 ? p + 4 : ""; *p >= '0' && *p <= '9'; p++)
        parent = parent * 10 + (*p - '0');
    return parent;
}

static struct exti_signals *signals_of(pid_t pid)
{
    struct exti_signals *s = NULL;
    sigset_t signals;

    lock_children(&signals);
    for (size_t i = 0; i < count && !s; i++)
        if (children[i].pid == pid)
            s = atomic_load(&children[i].ctx->signals);
    unlock_children(&signals);
    return s;
}

struct exti_signals *exti__child_signals(pid_t pid)
{
    struct exti_signals *s = NULL;
    const pid_t self = getpid();

    for (int i = 0; i < GENERATIONS && pid > 1 && pid != self && !s; i++) {
        s = signals_of(pid);
        pid = s ? pid : parent_of(pid);
    }
    return s;
}

/* ---- forks ---- */

static sigset_t fork_signals; /* of the thread that forks, which holds the lock */

static void begin_fork(void)
{
    sigset_t signals;

    lock_children(&signals);
    fork_signals = signals;
}

static void end_fork(void)
{
    const sigset_t signals = fork_signals;

    unlock_children(&signals);
}

/* They are the parent's. */
static void begin_child(void)
{
    count = 0;
    end_fork();
}

static void install_fork_handlers(void)
{
    fork_error = pthread_atfork(begin_fork, end_fork, begin_child);
}

int exti__children_survive_forks(void)
{
    pthread_once(&fork_once, install_fork_handlers);
    return fork_error;
}
