#define _GNU_SOURCE /* copy_file_range */
#include "base/os/fs_replace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#ifdef __linux__
#include <sys/sendfile.h>
#endif
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/os/fs_posix.h"
#include "base/os/fs_random.h"
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

/* Maps the pages of an image before it is written: write(2) is half as fast if it has to fault in
 * every page.  Reading one byte maps the cached pages around it, on Linux all of 64 KiB, and costs
 * half as much as MADV_POPULATE_READ, which goes page by page. */
static void map_pages(const volatile uint8_t *p, size_t n)
{
    for (size_t at = 0; at < n; at += (size_t)1 << 16)
        (void)p[at];
}

#ifdef __linux__
/* copy_file_range(2) fails between file systems of different types; sendfile(2) does not. */
static ssize_t copy_some(int from, int to, size_t n)
{
    ssize_t done = copy_file_range(from, NULL, to, NULL, n, 0);

    return done < 0 && errno == EXDEV ? sendfile(to, from, NULL, n) : done;
}

static int copy_bytes(int from, int to, size_t n)
{
    while (n) {
        ssize_t done = copy_some(from, to, n);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return -1;
        n -= (size_t)done;
    }
    return 0;
}

static int write_at(int fd, const uint8_t *p, size_t n, size_t at)
{
    while (n) {
        ssize_t done = pwrite(fd, p, n, (off_t)at);

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

static int copy_edited(int from, int to, const uint8_t *p, size_t n, const struct exti_fs_source *s)
{
    int rc = copy_bytes(from, to, s->kept);

    for (size_t i = 0; i < s->changed_count && rc == 0; i++)
        rc = write_at(to, p + s->changed[i].at, s->changed[i].n, s->changed[i].at);
    return rc == 0 ? write_at(to, p + s->kept, n - s->kept, s->kept) : rc;
}

/* The kernel copies cached pages in less than half the time that mapping and writing them takes,
 * and some file systems share them.  If the file is still the same version afterwards, the copied
 * bytes are the inspected ones.  On any failure the caller writes the image instead, and reports
 * what stops that. */
static int copy_image(int fd, const uint8_t *p, size_t n, const struct exti_fs_source *s)
{
    struct exti_file_id before, after;
    struct stat st;
    int from = open(s->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), rc = -1;

    if (from < 0)
        return -1;
    if (fstat(from, &st) == 0) {
        before = exti__posix_id_of(&st);
        if (exti__fs_same_id(&before, s->id))
            rc = copy_edited(from, fd, p, n, s);
    }
    if (rc == 0 && fstat(from, &st) == 0) {
        after = exti__posix_id_of(&st);
        rc = exti__fs_same_id(&after, s->id) ? 0 : -1;
    }
    close(from);
    return rc;
}
#else
static int copy_image(int fd, const uint8_t *p, size_t n, const struct exti_fs_source *s)
{
    (void)fd;
    (void)p;
    (void)n;
    (void)s;
    return -1;
}
#endif

/* Writes the image to an empty file. */
static int write_image(int fd, const uint8_t *p, size_t n, const struct exti_fs_source *from)
{
    if (from && copy_image(fd, p, n, from) == 0)
        return 0;
    if (from && (ftruncate(fd, 0) != 0 || lseek(fd, 0, SEEK_SET) != 0))
        return -1;
    map_pages(p, n);
    return exti__posix_write_all(fd, p, n);
}

static int sync_folder(const char *path, struct exti_error *err)
{
    const char *slash = strrchr(path, '/');
    char *dir;
    int fd, rc = 0;

    dir = exti__strdup(slash ? path : ".");
    if (!dir)
        return exti__fail_nomem(err);
    if (slash)
        dir[slash == path ? 1 : slash - path] = 0;
    fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* EINVAL: the file system cannot sync a folder, and so does not need it. */
    if (fd < 0 || (fsync(fd) != 0 && errno != EINVAL))
        rc = exti__fail_io(err, errno, dir, "cannot sync folder");
    if (fd >= 0)
        close(fd);
    exti__free(dir);
    return rc;
}

/* Fills the new file `temp` and renames it to `path`; closes `fd`. */
static int finish_replace(int fd, const char *temp, const char *path, size_t n, uint32_t flags,
                          bool written, struct exti_error *err)
{
    int rc = 0;

    if (!written)
        rc = exti__fail_io(err, errno, path, "cannot write %zu bytes", n);
    else if ((flags & EXTI_FS_SYNC) && fsync(fd) != 0)
        rc = exti__fail_io(err, errno, path, "cannot sync file");
    /* Network file systems report a full disk only now. */
    if (close(fd) != 0 && errno != EINTR && !rc)
        rc = exti__fail_io(err, errno, path, "cannot write %zu bytes", n);
    if (!rc && rename(temp, path) != 0)
        rc = exti__fail_io(err, errno, path, "cannot rename temporary file to its name");
    if (rc) {
        unlink(temp);
        return rc;
    }
    return flags & EXTI_FS_SYNC ? sync_folder(path, err) : 0;
}

int exti__fs_replace(const char *path, const void *p, size_t n, uint32_t flags,
                     struct exti_error *err)
{
    return exti__fs_replace_from(path, p, n, NULL, flags, err);
}

int exti__fs_replace_from(const char *path, const void *p, size_t n,
                          const struct exti_fs_source *from, uint32_t flags, struct exti_error *err)
{
    uint8_t random[EXTI_TEMP_RANDOM];
    char *temp;
    int fd, rc;

    if (exti__fs_random(random, sizeof random, "a temporary name", err)) {
        exti__error_file(err, path);
        return EXTI_E_IO;
    }
    temp = exti__fs_temp_path(path, random);
    if (!temp)
        return exti__fail_nomem(err);
    fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
              (flags & EXTI_FS_EXECUTABLE ? 0777 : 0666) & (flags & EXTI_FS_PRIVATE ? 0700 : 0777));
    if (fd < 0)
        rc = exti__fail_io(err, errno, path, "cannot create temporary file beside it");
    else
        rc = finish_replace(fd, temp, path, n, flags, write_image(fd, p, n, from) == 0, err);
    exti__free(temp);
    return rc;
}
