/* fcntl and lockf: the record locks of copies belong to their context instead of the process. */
#define _GNU_SOURCE /* lockf64 */
#include "loader/interpose/lock_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/track/address_map.h"
#include "loader/track/record_locks.h"
#include "loader/track/redirects.h"

static const struct exti_ctx *locker_of(const void *call)
{
    struct exti_module m;

    return exti__address_map_find((uintptr_t)call, &m) ? m.ctx : NULL;
}

#define CALL __builtin_return_address(0)

/* As a system call returns. */
static int set_errno(int error)
{
    if (!error)
        return 0;
    errno = error;
    return -1;
}

/* ---- ranges ---- */

static enum exti_lock_kind kind_of(short type)
{
    return type == F_RDLCK ? EXTI_LOCK_READ : type == F_WRLCK ? EXTI_LOCK_WRITE : EXTI_LOCK_NONE;
}

static int find_base(int fd, short whence, int64_t *out)
{
    struct stat st;
    off_t at;

    switch (whence) {
    case SEEK_SET:
        *out = 0;
        return 0;
    case SEEK_CUR:
        at = lseek(fd, 0, SEEK_CUR);
        *out = at < 0 ? 0 : at;
        return at < 0 && errno == EBADF ? EBADF : 0;
    case SEEK_END:
        if (fstat(fd, &st))
            return errno;
        *out = st.st_size;
        return 0;
    default:
        return EINVAL;
    }
}

/* POSIX fcntl: a negative length means the bytes before the start, 0 those up to any end of the
 * file.  Returns 0 or an errno. */
static int make_range(int fd, const struct flock *l, struct exti_lock_range *out)
{
    int64_t base = 0, start, end = INT64_MAX;
    int rc = find_base(fd, l->l_whence, &base);

    if (rc)
        return rc;
    if (__builtin_add_overflow(base, (int64_t)l->l_start, &start))
        return EOVERFLOW;
    if (start < 0)
        return EINVAL;
    if (l->l_len > 0 && __builtin_add_overflow(start, (int64_t)l->l_len - 1, &end))
        return EOVERFLOW;
    if (l->l_len < 0) {
        end = start - 1;
        start += l->l_len;
        if (start < 0)
            return EINVAL;
    }
    *out = (struct exti_lock_range){start, end, kind_of(l->l_type)};
    return 0;
}

/* ---- fcntl ---- */

static int get_lock(const struct exti_ctx *ctx, int fd, struct flock *l)
{
    struct exti_lock_range range;
    pid_t pid = 0;
    int rc = kind_of(l->l_type) == EXTI_LOCK_NONE ? EINVAL : make_range(fd, l, &range);

    if (!rc)
        rc = exti__record_lock_test(ctx, fd, &range, &pid);
    if (rc == EXTI_LOCK_BY_SYSTEM)
        return fcntl(fd, F_GETLK, l);
    if (rc)
        return set_errno(rc);
    /* POSIX fcntl: without a lock in the way nothing but the type changes. */
    if (range.kind == EXTI_LOCK_NONE) {
        l->l_type = F_UNLCK;
        return 0;
    }
    l->l_type = range.kind == EXTI_LOCK_READ ? F_RDLCK : F_WRLCK;
    l->l_whence = SEEK_SET;
    l->l_start = range.start;
    l->l_len = range.end == INT64_MAX ? 0 : range.end - range.start + 1;
    l->l_pid = pid;
    return 0;
}

static int set_lock(const struct exti_ctx *ctx, int fd, int command, const struct flock *l)
{
    struct exti_lock_range range;
    int rc = make_range(fd, l, &range);

    if (!rc && range.kind == EXTI_LOCK_NONE && l->l_type != F_UNLCK)
        rc = EINVAL;
    if (!rc)
        rc = exti__record_lock(ctx, fd, &range, command == F_SETLKW);
    return rc == EXTI_LOCK_BY_SYSTEM ? fcntl(fd, command, l) : set_errno(rc);
}

static int interposed_fcntl(int fd, int command, ...)
{
    const struct exti_ctx *ctx;
    va_list ap;
    void *arg;

    /* An int or a pointer; on the systems that this is for they are passed alike. */
    va_start(ap, command);
    arg = va_arg(ap, void *);
    va_end(ap);
    if ((command != F_GETLK && command != F_SETLK && command != F_SETLKW) || !arg)
        return fcntl(fd, command, arg);
    ctx = locker_of(CALL);
    if (!ctx)
        return fcntl(fd, command, arg);
    return command == F_GETLK ? get_lock(ctx, fd, arg) : set_lock(ctx, fd, command, arg);
}

/* ---- lockf ---- */

/* POSIX lockf: EACCES or EAGAIN if another has locked the section. */
static int test_section(const struct exti_ctx *ctx, int fd, struct flock *l)
{
    if (get_lock(ctx, fd, l))
        return -1;
    return l->l_type == F_UNLCK ? 0 : set_errno(EACCES);
}

static int interposed_lockf(int fd, int command, off_t size)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_CUR, .l_len = size};
    const struct exti_ctx *ctx = locker_of(CALL);

    if (!ctx)
        return lockf(fd, command, size);
    switch (command) {
    case F_LOCK:
        return set_lock(ctx, fd, F_SETLKW, &l);
    case F_TLOCK:
        return set_lock(ctx, fd, F_SETLK, &l);
    case F_ULOCK:
        l.l_type = F_UNLCK;
        return set_lock(ctx, fd, F_SETLK, &l);
    case F_TEST:
        /* glibc looks for write locks alone, through descriptors of any access mode. */
        l.l_type = F_RDLCK;
        return test_section(ctx, fd, &l);
    default:
        return set_errno(EINVAL);
    }
}

/* ---- looking them up ---- */

void *exti__lock_call(const char *symbol)
{
    const struct exti_redirect calls[] = {
        {"fcntl", EXTI_ADDRESS(interposed_fcntl)},   {"fcntl64", EXTI_ADDRESS(interposed_fcntl)},
        {"__fcntl", EXTI_ADDRESS(interposed_fcntl)}, {"lockf", EXTI_ADDRESS(interposed_lockf)},
        {"lockf64", EXTI_ADDRESS(interposed_lockf)},
    };

    /* Where they differ, off_t is too small for what the 64-bit functions are given. */
    if (sizeof(off_t) < sizeof(int64_t) || sizeof(void *) < sizeof(int64_t))
        return NULL;
    return exti__redirect_find(calls, sizeof calls / sizeof *calls, symbol);
}
