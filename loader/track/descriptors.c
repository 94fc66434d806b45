#include "loader/track/descriptors.h"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "loader/track/fork_handlers.h"

/* What a descriptor was when it was made.  It may be another file by now, as nobody tells when it
 * is closed. */
struct descriptor {
    const struct exti_ctx *ctx;
    dev_t device;
    ino_t inode;
};

#define ROOM_FIRST 1024

/* Guards the table, which goes by the numbers.  Signals are blocked meanwhile: a handler may make a
 * pipe.  Innermost. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static int fork_error;
static struct descriptor *table;
static size_t room;

void exti__descriptors_begin(sigset_t *signals)
{
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, signals);
    pthread_mutex_lock(&lock);
}

void exti__descriptors_end(const sigset_t *signals)
{
    pthread_mutex_unlock(&lock);
    pthread_sigmask(SIG_SETMASK, signals, NULL);
}

static bool grow(size_t number)
{
    size_t larger = room ? room : ROOM_FIRST;
    struct descriptor *grown;

    while (larger <= number)
        larger *= 2;
    if (larger == room)
        return true;
    grown = exti__realloc(table, larger * sizeof *grown);
    if (!grown)
        return false;
    for (size_t i = room; i < larger; i++)
        grown[i] = (struct descriptor){0};
    table = grown;
    room = larger;
    return true;
}

void exti__descriptor_made(const struct exti_ctx *ctx, int fd)
{
    struct stat st;

    if (fstat(fd, &st) == 0 && grow((size_t)fd))
        table[fd] = (struct descriptor){ctx, st.st_dev, st.st_ino};
}

void exti__descriptors_forget(const struct exti_ctx *ctx)
{
    sigset_t signals;

    exti__descriptors_begin(&signals);
    for (size_t i = 0; i < room; i++)
        if (table[i].ctx == ctx)
            table[i].ctx = NULL;
    exti__descriptors_end(&signals);
}

/* ---- forks ---- */

static sigset_t fork_signals; /* of the thread that forks, which holds the lock */

static void begin_fork(void)
{
    sigset_t signals;

    exti__descriptors_begin(&signals);
    fork_signals = signals;
}

static void end_fork(void)
{
    const sigset_t signals = fork_signals;

    exti__descriptors_end(&signals);
}

static bool is_unchanged(int fd, const struct descriptor *d)
{
    struct stat st;

    return fstat(fd, &st) == 0 && st.st_dev == d->device && st.st_ino == d->inode;
}

/* The child of a fork by the program, or by who is in no context, keeps all. */
static void begin_child(void)
{
    const struct exti_ctx *forking = exti__fork_handlers_ctx();

    for (size_t i = 0; i < room; i++) {
        if (!forking || !table[i].ctx || table[i].ctx == forking)
            continue;
        if (is_unchanged((int)i, &table[i]))
            close((int)i);
        table[i].ctx = NULL;
    }
    end_fork();
}

static void install_fork_handlers(void)
{
    grow(0);
    fork_error = pthread_atfork(begin_fork, end_fork, begin_child);
}

int exti__descriptors_survive_forks(void)
{
    pthread_once(&fork_once, install_fork_handlers);
    return fork_error;
}
