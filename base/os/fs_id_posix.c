#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/os/fs_posix.h"

static const char *file_kind(mode_t mode)
{
    if (S_ISDIR(mode))
        return "a directory";
    if (S_ISFIFO(mode))
        return "a FIFO";
    if (S_ISSOCK(mode))
        return "a socket";
    return "a device";
}

int exti__posix_check_regular(const struct stat *st, const char *path, struct exti_error *err)
{
    if (S_ISREG(st->st_mode))
        return 0;
    exti__fail(err, EXTI_E_IO, EXTI_NO_OFFSET, "%s, not a regular file", file_kind(st->st_mode));
    if (err && S_ISDIR(st->st_mode))
        err->os_error = EISDIR;
    exti__error_file(err, path);
    return EXTI_E_IO;
}

struct exti_file_id exti__posix_id_of(const struct stat *st)
{
#ifdef __APPLE__
    const struct timespec mtime = st->st_mtimespec, ctime = st->st_ctimespec;
#else
    const struct timespec mtime = st->st_mtim, ctime = st->st_ctim;
#endif

    return (struct exti_file_id){
        .size = (uint64_t)st->st_size,
        .inode = (uint64_t)st->st_ino,
        .device = (uint64_t)st->st_dev,
        .mtime_ns = (int64_t)mtime.tv_sec * 1000000000 + mtime.tv_nsec,
        .ctime_ns = (int64_t)ctime.tv_sec * 1000000000 + ctime.tv_nsec,
        .mode = st->st_mode & 0777,
    };
}

int exti__fs_id(const char *path, struct exti_file_id *out, struct exti_error *err)
{
    struct stat st;
    int rc;

    if (stat(path, &st) != 0)
        return exti__fail_io(err, errno, path, "cannot look up file");
    rc = exti__posix_check_regular(&st, path, err);
    if (rc)
        return rc;
    *out = exti__posix_id_of(&st);
    return 0;
}

/* O_NONBLOCK because opening a FIFO would otherwise wait for a writer; it has no effect on the
 * regular files that exti__posix_check_regular accepts. */
int exti__posix_open_regular(const char *path, int flags, int *out, struct stat *st,
                             struct exti_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags), rc;

    if (fd < 0)
        return exti__fail_io(err, errno, path, "cannot open file");
    rc = fstat(fd, st) != 0 ? exti__fail_io(err, errno, path, "cannot look up file")
                            : exti__posix_check_regular(st, path, err);
    if (rc) {
        close(fd);
        return rc;
    }
    *out = fd;
    return 0;
}

int exti__fs_realpath(const char *path, char **out, struct exti_error *err)
{
    char buf[PATH_MAX], *copy;

    if (!realpath(path, buf))
        return exti__fail_io(err, errno, path, "cannot resolve path");
    copy = exti__strdup(buf);
    if (!copy)
        return exti__fail_nomem(err);
    *out = copy;
    return 0;
}

bool exti__fs_is_named_itself(const char *path)
{
#ifdef __APPLE__
    (void)path;
    return false;
#else
    struct stat st;

    return lstat(path, &st) == 0 && S_ISREG(st.st_mode);
#endif
}
