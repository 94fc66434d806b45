/* Lets chosen system calls of a test program be interrupted by a signal.  Included by one source of
 * it, before any other header: the functions here take the place of the C library's, also for the
 * code under test, in a shared library too. */
#ifndef TESTS_SUPPORT_INTERRUPT_CALLS_H
#define TESTS_SUPPORT_INTERRUPT_CALLS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* How many of the next calls are. */
static struct {
    atomic_int read, write, waitpid;
} interrupts;

static inline bool interrupts_now(atomic_int *left)
{
    if (*left <= 0)
        return false;
    --*left;
    errno = EINTR;
    return true;
}

__attribute__((visibility("default"))) ssize_t read(int fd, void *to, size_t n)
{
    return interrupts_now(&interrupts.read) ? -1 : syscall(SYS_read, fd, to, n);
}

/* What read is called with _FORTIFY_SOURCE, by which the product is built. */
ssize_t __read_chk(int fd, void *to, size_t n, size_t room);
__attribute__((visibility("default"))) ssize_t __read_chk(int fd, void *to, size_t n, size_t room)
{
    return n > room ? -1 : read(fd, to, n);
}

__attribute__((visibility("default"))) ssize_t write(int fd, const void *from, size_t n)
{
    return interrupts_now(&interrupts.write) ? -1 : syscall(SYS_write, fd, from, n);
}

__attribute__((visibility("default"))) pid_t waitpid(pid_t pid, int *status, int options)
{
    if (interrupts_now(&interrupts.waitpid))
        return -1;
    return (pid_t)syscall(SYS_wait4, pid, status, options, NULL);
}

#endif
