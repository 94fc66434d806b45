#include "base/os/fs_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/os/fs_posix.h"

/* Whether `path` still names the locked file.  The lock's last holder may have removed it; then the
 * next process to come would create and lock another file. */
static bool still_named(int fd, const char *path)
{
    struct stat ours, named;

    return fstat(fd, &ours) == 0 && stat(path, &named) == 0 && ours.st_ino == named.st_ino &&
           ours.st_dev == named.st_dev;
}

/* O_NOFOLLOW: a lock file is written to, and a link in its place must not redirect that to another
 * file.  flock also works on a file opened for reading, if nothing can be written there. */
static int open_lock(const char *path, bool *made)
{
    const int flags = O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW;
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | flags, 0666), os_error = errno;

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
int exti__fs_lock(const char *path, struct exti_lock *out, struct exti_error *err)
{
    for (;;) {
        bool made;
        int fd = open_lock(path, &made), rc;

        if (fd < 0 && errno == EEXIST) /* removed since */
            continue;
        if (fd < 0)
            return exti__fail_io(err, errno, path, "cannot open lock file");
        do
            rc = flock(fd, LOCK_EX);
        while (rc != 0 && errno == EINTR);
        if (rc != 0) {
            rc = exti__fail_io(err, errno, path, "cannot lock file");
            if (made)
                unlink(path);
            close(fd);
            return rc;
        }
        if (still_named(fd, path)) {
            *out = (struct exti_lock){fd, made};
            return 0;
        }
        close(fd);
    }
}

int exti__fs_lock_note(const struct exti_lock *lock, const char *text, struct exti_error *err)
{
    if (ftruncate(lock->fd, 0) != 0 || lseek(lock->fd, 0, SEEK_SET) < 0 ||
        exti__posix_write_all(lock->fd, text, strlen(text)) != 0)
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
