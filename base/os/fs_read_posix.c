#include "base/os/fs_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/os/fs_owner.h"
#include "base/os/fs_posix.h"

/* Reads to the end of the file, or until it has more than `max` bytes.  *buf has room for one more
 * byte. */
static int read_to_end(int fd, const char *path, size_t max, size_t guess, char **buf, size_t *n,
                       struct exti_error *err)
{
    size_t cap = guess < max ? guess + 1 : max + 1, have = 0;
    char *p = exti__alloc(cap + 1), *more;
    ssize_t got;

    if (!p)
        return exti__fail_nomem(err);
    while ((got = read(fd, p + have, cap - have)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            exti__free(p);
            return exti__fail_io(err, errno, path, "cannot read file");
        }
        have += (size_t)got;
        if (have < cap || have > max)
            continue;
        cap = cap < max / 2 ? cap * 2 : max + 1;
        more = exti__realloc(p, cap + 1);
        if (!more) {
            exti__free(p);
            return exti__fail_nomem(err);
        }
        p = more;
    }
    *buf = p;
    *n = have;
    return 0;
}

/* Closes the open file `fd`. */
static int read_opened(int fd, const struct stat *st, const char *path, size_t max, char **out,
                       size_t *n, struct exti_error *err)
{
    size_t have = 0;
    char *buf = NULL;
    int rc;

    rc = read_to_end(fd, path, max, (uint64_t)st->st_size < max ? (size_t)st->st_size : max, &buf,
                     &have, err);
    close(fd);
    if (rc)
        return rc;
    if (have > max) {
        exti__free(buf);
        exti__fail(err, EXTI_E_FORMAT, max, "file has more than %zu bytes", max);
        exti__error_file(err, path);
        return EXTI_E_FORMAT;
    }
    buf[have] = 0;
    *out = buf;
    *n = have;
    return 0;
}

int exti__fs_read(const char *path, size_t max, char **out, size_t *n, struct exti_error *err)
{
    struct stat st;
    int fd, rc = exti__posix_open_regular(path, 0, &fd, &st, err);

    return rc ? rc : read_opened(fd, &st, path, max, out, n, err);
}

int exti__fs_read_trusted(const char *path, size_t max, char **out, size_t *n,
                          struct exti_error *err)
{
    struct stat st;
    int fd, rc = exti__fs_check_file(path, err);

    /* Again on what was opened: that is what counts. */
    if (!rc)
        rc = exti__posix_open_regular(path, O_NOFOLLOW, &fd, &st, err);
    if (rc)
        return rc;
    rc = exti__posix_check_owner(path, &st, err);
    if (!rc)
        return read_opened(fd, &st, path, max, out, n, err);
    close(fd);
    return rc;
}
