#include "base/os/fs_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/os/fs_posix.h"

/* Each attempt but the last has met a process that removed the file just then. */
#define ATTEMPTS 1000

/* Whether `path` still names the locked file.  The lock's last holder may have removed it; then the
 * next process to come would create and lock another file.  ESTALE is a network file system's word
 * for that. */
static int check_named(int fd, const char *path, bool *named, struct exti_error *err)
{
    struct stat ours, there;

    *named = false;
    if (fstat(fd, &ours) != 0)
        return exti__fail_io(err, errno, path, "cannot look up lock file");
    if (stat(path, &there) != 0)
        return errno == ENOENT || errno == ESTALE
                   ? 0
                   : exti__fail_io(err, errno, path, "cannot look up lock file");
    *named = ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
    return 0;
}

/* O_NOFOLLOW: a lock file is written to, and a link in its place must not redirect that to another
 * file.  flock also works on a file opened for reading, if nothing can be written there. */
static int open_lock(const char *path, bool *made)
{
    const int flags = O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW;
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | flags, 0644), os_error = errno;

    *made = fd >= 0;
    if (fd >= 0 || (os_error != EEXIST && os_error != EROFS && os_error != EACCES))
        return fd;
    fd = open(path, O_RDWR | flags);
    if (fd < 0 && (errno == EACCES || errno == EROFS || errno == EPERM))
        fd = open(path, O_RDONLY | flags);
    if (fd < 0 && errno == ENOENT)
        errno = os_error;
    return fd;
}

/* flock rather than fcntl: the open file owns the lock, so it also excludes threads, and closing
 * another descriptor does not release it. */
static int lock_file(int fd, const char *path, struct exti_error *err)
{
    int rc;

    do
        rc = flock(fd, LOCK_EX);
    while (rc != 0 && errno == EINTR);
    return rc ? exti__fail_io(err, errno, path, "cannot lock file") : 0;
}

int exti__fs_lock(const char *path, struct exti_lock *out, struct exti_error *err)
{
    for (int i = 0; i < ATTEMPTS; i++) {
        bool made, named = false;
        int fd = open_lock(path, &made), rc;

        if (fd < 0 && errno == EEXIST) /* removed since */
            continue;
        if (fd < 0)
            return exti__fail_io(err, errno, path, "cannot open lock file");
        rc = lock_file(fd, path, err);
        if (rc && made)
            unlink(path);
        if (!rc)
            rc = check_named(fd, path, &named, err);
        if (named) {
            *out = (struct exti_lock){fd, made};
            return 0;
        }
        close(fd);
        if (rc)
            return rc;
    }
    return exti__fail_io(err, EBUSY, path,
                         "cannot lock file: others have removed it %d times meanwhile", ATTEMPTS);
}

bool exti__fs_lock_can_write(const struct exti_lock *lock)
{
    return (fcntl(lock->fd, F_GETFL) & O_ACCMODE) == O_RDWR;
}

/* EINVAL: the file system cannot sync, and so does not need it. */
int exti__fs_lock_note(const struct exti_lock *lock, const char *text, bool sync,
                       struct exti_error *err)
{
    if (ftruncate(lock->fd, 0) != 0 || lseek(lock->fd, 0, SEEK_SET) < 0 ||
        exti__posix_write_all(lock->fd, text, strlen(text)) != 0 ||
        (sync && fsync(lock->fd) != 0 && errno != EINVAL))
        return exti__fail_io(err, errno, "", "cannot write the lock file");
    return 0;
}

/* Unlocks before closing: a child forked meanwhile shares the open file and would keep the lock. */
void exti__fs_unlock(struct exti_lock *lock)
{
    if (lock->fd < 0)
        return;
    flock(lock->fd, LOCK_UN);
    close(lock->fd);
    lock->fd = -1;
}
