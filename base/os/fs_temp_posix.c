/* A new file beside the one that it will replace. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/os/fs_folder.h"
#include "base/os/fs_posix.h"
#include "base/os/fs_random.h"
#include "base/os/fs_replace.h"
#include "base/os/fs_temp_name.h"

int exti__posix_write_all(int fd, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;

    while (n) {
        /* Linux writes at most 2 GiB per call; macOS refuses more. */
        size_t chunk = n < INT_MAX ? n : (size_t)1 << 30;
        ssize_t done = write(fd, p, chunk);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return -1;
        p += done;
        n -= (size_t)done;
    }
    return 0;
}

int exti__posix_write_at(int fd, const uint8_t *p, size_t n, size_t at)
{
    while (n) {
        ssize_t done = pwrite(fd, p, n < INT_MAX ? n : (size_t)1 << 30, (off_t)at);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return -1;
        p += done;
        at += (size_t)done;
        n -= (size_t)done;
    }
    return 0;
}

/* Gives the new file the mode and the owner of the one at `path`.  If the caller may not give it
 * that group, its own group gets no right by this. */
static int take_mode(int fd, const char *path, struct exti_error *err)
{
    struct stat st;
    mode_t mode;

    if (stat(path, &st) != 0)
        return exti__fail_io(err, errno, path, "cannot look up file");
    mode = st.st_mode & 0777;
    if (fchown(fd, st.st_uid, st.st_gid) != 0 && fchown(fd, (uid_t)-1, st.st_gid) != 0)
        mode &= 0707;
    if (fchmod(fd, mode) != 0)
        return exti__fail_io(err, errno, path, "cannot give the new file its mode");
    return 0;
}

int exti__posix_finish_temp(int fd, const char *temp, const char *path, size_t n, uint32_t flags,
                            int rc, struct exti_error *err)
{
    if (!rc && (flags & EXTI_FS_LIKE_OLD))
        rc = take_mode(fd, path, err);
    if (!rc && (flags & EXTI_FS_SYNC) && fsync(fd) != 0)
        rc = exti__fail_io(err, errno, path, "cannot sync file");
    /* Network file systems report a full disk only now. */
    if (close(fd) != 0 && errno != EINTR && !rc)
        rc = exti__fail_io(err, errno, path, "cannot write %zu bytes", n);
    if (!rc && !(flags & EXTI_FS_FIRST) && rename(temp, path) != 0)
        rc = exti__fail_io(err, errno, path, "cannot rename temporary file to its name");
    if (rc) {
        unlink(temp);
        return rc;
    }
    return flags & EXTI_FS_SYNC ? exti__fs_sync_parent(path, err) : 0;
}

static int name_temp(const char *path, uint32_t flags, char **out, struct exti_error *err)
{
    uint8_t random[EXTI_TEMP_RANDOM];

    if (flags & EXTI_FS_FIRST)
        return exti__copy_text(out, path, err);
    if (exti__fs_random(random, sizeof random, "a temporary name", err)) {
        exti__error_file(err, path);
        return EXTI_E_IO;
    }
    *out = exti__fs_temp_path(path, random);
    return *out ? 0 : exti__fail_nomem(err);
}

int exti__posix_create_temp(const char *path, int access, uint32_t flags, char **temp, int *fd,
                            struct exti_error *err)
{
    const mode_t mode = flags & EXTI_FS_EXECUTABLE ? 0755 : 0644;
    int rc = name_temp(path, flags, temp, err);

    if (rc)
        return rc;
    *fd = open(*temp, access | O_CREAT | O_EXCL | O_CLOEXEC,
               mode & (flags & (EXTI_FS_PRIVATE | EXTI_FS_LIKE_OLD) ? 0700 : 0777));
    if (*fd >= 0)
        return 0;
    rc = exti__fail_io(err, errno, path, "cannot create temporary file beside it");
    exti__free(*temp);
    return rc;
}
