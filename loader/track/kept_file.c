#define _GNU_SOURCE /* O_CLOEXEC, O_NONBLOCK */
#include "loader/track/kept_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* POSIX open: the lowest number that is free.  Programs rely on that for the numbers 0 to 2 at
 * least, and old ones for those below FD_SETSIZE.  Where fewer descriptors are allowed, as by most
 * login sessions, the upper half is taken. */
#define LEAST_NUMBER 1024

static bool is_same_file(const struct exti_kept_file *f, const struct stat *st)
{
    return st->st_dev == f->dev && st->st_ino == f->ino;
}

bool exti__kept_file_is(const struct exti_kept_file *f, int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && is_same_file(f, &st);
}

/* A duplicate with a high number, or a low one where the process may have no high ones; or -1. */
static int duplicate_high(int fd)
{
    int least = LEAST_NUMBER, high;

    do
        high = fcntl(fd, F_DUPFD_CLOEXEC, least);
    while (high < 0 && (errno == EINVAL || errno == EMFILE) && (least /= 2) > 2);
    return high;
}

#define LOCKS_MAX 64 /* to look at */

/* Whether the process may have record locks of its own on the file, those of a shared library for
 * example: closing any descriptor of the file drops them (POSIX close).  A description that has
 * just been opened sees them.  Behind the read lock of one owner may be that of another. */
static bool process_may_have_locks(int fd)
{
    const pid_t own = getpid();
    off_t start = 0;

    for (int i = 0; i < LOCKS_MAX; i++) {
        struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = start};

        if (fcntl(fd, F_OFD_GETLK, &l) || l.l_type == F_UNLCK)
            return false;
        if (l.l_type == F_RDLCK || l.l_pid == own)
            return true;
        if (!l.l_len)
            return false;
        start = l.l_start + l.l_len;
    }
    return true;
}

/* A description of its own of the file of `fd`, whatever has become of its name; or -1.  With a
 * high number, unless closing the low one would do harm. proc(5): /proc/self/fd */
static int open_again(const struct exti_kept_file *f, int fd, int mode)
{
    char path[32];
    int low, high;

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    low = open(path, mode | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (low > STDERR_FILENO && exti__kept_file_is(f, low) && process_may_have_locks(low))
        return low;
    if (low < 0)
        return -1;
    high = exti__kept_file_is(f, low) ? duplicate_high(low) : -1;
    close(low);
    return high;
}

/* Opening a device or a FIFO may have effects, so only regular files are. */
int exti__kept_file_open(struct exti_kept_file *f, int fd, int mode, const struct stat *st)
{
    struct exti_kept_file made = {.dev = st->st_dev, .ino = st->st_ino, .fd = -1, .mode = mode};

    if (S_ISREG(st->st_mode) && mode != O_RDONLY) {
        made.fd = open_again(&made, fd, O_RDWR);
        if (made.fd >= 0)
            made.mode = O_RDWR;
    }
    if (made.fd < 0 && S_ISREG(st->st_mode))
        made.fd = open_again(&made, fd, mode);
    if (made.fd < 0)
        made.fd = duplicate_high(fd);
    if (made.fd < 0)
        return errno;
    *f = made;
    return 0;
}

bool exti__kept_file_can_close(const struct exti_kept_file *f)
{
    return !exti__kept_file_is(f, f->fd) || !process_may_have_locks(f->fd);
}

bool exti__kept_file_close(const struct exti_kept_file *f)
{
    if (!exti__kept_file_can_close(f))
        return false;
    if (exti__kept_file_is(f, f->fd))
        close(f->fd);
    return true;
}

int exti__kept_file_move(struct exti_kept_file *f)
{
    int fd = duplicate_high(f->fd);

    if (fd < 0)
        return errno;
    f->fd = fd;
    return 0;
}
