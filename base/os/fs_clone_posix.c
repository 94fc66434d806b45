#define _GNU_SOURCE /* copy_file_range */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __linux__
#include <sys/sendfile.h>
#endif
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/os/fs_posix.h"
#include "base/os/fs_replace.h"
#include "base/shareable.h"

/* Smaller files cost less if they are edited in memory and written by one call. */
#define MEMORY_LIMIT ((size_t)256 << 10)

#ifdef __linux__
/* The kernel copies cached pages without our reading them, and some file systems share them.
 * copy_file_range(2) fails between file systems of different types; sendfile(2) does not. */
static ssize_t copy_some(int from, int to, size_t at, size_t n)
{
    off_t offset = (off_t)at, place = (off_t)at;
    ssize_t done = copy_file_range(from, &offset, to, &place, n, 0);

    if (done >= 0 || errno != EXDEV)
        return done;
    return lseek(to, place, SEEK_SET) < 0 ? -1 : sendfile(to, from, &offset, n);
}
#else
static ssize_t copy_some(int from, int to, size_t at, size_t n)
{
    (void)from;
    (void)to;
    (void)at;
    (void)n;
    errno = ENOSYS;
    return -1;
}
#endif

/* Does the same by reading.  0 is the end of the file. */
static int read_and_write(int from, const char *source, int to, size_t at, size_t n, size_t *done,
                          const char *path, struct exti_error *err)
{
    uint8_t buf[1 << 16];
    ssize_t got;

    n = n < sizeof buf ? n : sizeof buf;
    do
        got = pread(from, buf, n, (off_t)at);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return exti__fail_io(err, errno, source, "cannot read file");
    if (exti__posix_write_at(to, buf, (size_t)got, at) != 0)
        return exti__fail_io(err, errno, path, "cannot write %zu bytes", n);
    *done = (size_t)got;
    return 0;
}

static int check_version(int from, const struct exti_fs_source *s, struct exti_error *err)
{
    struct exti_file_id now;
    struct stat st;

    if (fstat(from, &st) != 0)
        return exti__fail_io(err, errno, s->path, "cannot look up file");
    now = exti__posix_id_of(&st);
    if (!exti__fs_same_id(&now, s->id))
        return exti__fail_io(err, ESTALE, s->path, "changed while it was copied");
    return 0;
}

static int copy_range(int from, const char *source, int to, size_t at, size_t end, const char *path,
                      struct exti_error *err)
{
    int rc = 0;

    while (at < end && !rc) {
        ssize_t some = copy_some(from, to, at, end - at);
        size_t done = some > 0 ? (size_t)some : 0;

        if (!done)
            rc = read_and_write(from, source, to, at, end - at, &done, path, err);
        if (!rc && !done)
            rc = exti__fail_io(err, ESTALE, source, "changed while it was copied");
        at += done;
    }
    return rc;
}

/* Copies the bytes that are kept to an empty file.  If the source is the same version before and
 * afterwards, these are the bytes that were read. */
static int copy_kept(int from, const struct exti_fs_source *s, const struct exti_fs_clone *c,
                     const char *path, struct exti_error *err)
{
    int rc = check_version(from, s, err);

    for (size_t i = 0; i <= c->left_out.count && !rc; i++) {
        const struct exti_range r = exti__parts_between(&c->left_out, i, s->kept);

        rc = copy_range(from, s->path, c->fd, r.at, r.at + r.n, path, err);
    }
    if (!rc && c->left_out.count && ftruncate(c->fd, (off_t)s->kept) != 0)
        rc = exti__fail_io(err, errno, path, "cannot write %zu bytes", s->kept);
    return rc ? rc : check_version(from, s, err);
}

/* The image shares the new file's cached pages until they are written to, so it costs memory only
 * for the pages that the edits touch.  No one else knows the file.  It ends with the kept bytes, so
 * zeros follow them in their last page. */
static int map_clone(const char *path, struct exti_fs_clone *c, struct exti_error *err)
{
    uint8_t *p = mmap(NULL, c->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        return exti__fail_io(err, errno, path, "cannot reserve %zu bytes of memory", c->size);
    c->image = (struct exti_mapping){.p = p, .n = c->kept, .mapped = c->size};
    if (mmap(p, c->kept, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, c->fd, 0) == MAP_FAILED)
        return exti__fail_io(err, errno, path, "cannot map file");
    return 0;
}

static int clone_file(const char *path, const struct exti_fs_source *s, uint32_t flags,
                      struct exti_fs_clone *c, struct exti_error *err)
{
    int from = open(s->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), rc;

    if (from < 0)
        return exti__fail_io(err, errno, s->path, "cannot open file");
    rc = exti__posix_create_temp(path, O_RDWR, flags, &c->temp, &c->fd, err);
    if (rc) {
        c->temp = NULL;
    } else {
        rc = copy_kept(from, s, c, path, err);
        if (!rc)
            rc = map_clone(path, c, err);
    }
    close(from);
    if (rc)
        exti__fs_clone_drop(c);
    return rc;
}

int exti__fs_clone(const char *path, const struct exti_fs_source *source, size_t size,
                   uint32_t flags, struct exti_fs_clone *out, struct exti_error *err)
{
    struct exti_fs_clone c = {.size = size, .kept = source->kept, .fd = -1};
    const size_t n = source->bytes->n;
    int rc;

    if (source->left_out)
        c.left_out = *source->left_out;
    if (n <= MEMORY_LIMIT)
        rc = exti__fs_map_image(source->bytes, size > n ? size - n : 0, &c.image, err);
    else
        rc = clone_file(path, source, flags, &c, err);
    if (!rc)
        *out = c;
    return rc;
}

/* Writes an image that has no file yet, without what is left out. */
static int write_image(struct exti_fs_clone *c, const char *path, uint32_t flags,
                       struct exti_error *err)
{
    int rc;

    if (!c->left_out.count)
        return exti__fs_replace(path, c->image.p, c->size, flags, err);
    rc = exti__posix_create_temp(path, O_WRONLY, flags, &c->temp, &c->fd, err);
    if (rc) {
        c->temp = NULL;
        return rc;
    }
    for (size_t i = 0; i <= c->left_out.count && !rc; i++) {
        const struct exti_range r = exti__parts_between(&c->left_out, i, c->size);

        if (exti__posix_write_at(c->fd, c->image.p + r.at, r.n, r.at) != 0)
            rc = exti__fail_io(err, errno, path, "cannot write %zu bytes", c->size);
    }
    if (!rc && ftruncate(c->fd, (off_t)c->size) != 0)
        rc = exti__fail_io(err, errno, path, "cannot write %zu bytes", c->size);
    rc = exti__posix_finish_temp(c->fd, c->temp, path, c->size, flags, rc, err);
    exti__free(c->temp);
    c->temp = NULL;
    return rc;
}

int exti__fs_clone_replace(struct exti_fs_clone *c, const char *path,
                           const struct exti_range *changed, size_t changed_count, uint32_t flags,
                           struct exti_error *err)
{
    int fd = c->fd, rc = 0;

    if (!c->temp) {
        rc = write_image(c, path, flags, err);
        exti__fs_clone_drop(c);
        return rc;
    }
    for (size_t i = 0; i < changed_count && !rc; i++)
        rc = exti__posix_write_at(fd, c->image.p + changed[i].at, changed[i].n, changed[i].at);
    if (!rc)
        rc = exti__posix_write_at(fd, c->image.p + c->kept, c->size - c->kept, c->kept);
    if (rc)
        rc = exti__fail_io(err, errno, path, "cannot write %zu bytes", c->size);
    rc = exti__posix_finish_temp(fd, c->temp, path, c->size, flags, rc, err);
    exti__free(c->temp);
    c->temp = NULL;
    exti__fs_clone_drop(c);
    return rc;
}

static int write_edits(const struct exti_fs_clone *c, const struct exti_range *changed,
                       size_t count, const uint8_t *bytes)
{
    int rc = 0;

    for (size_t i = 0; i < count && !rc; i++) {
        rc = exti__posix_write_at(c->fd, bytes, changed[i].n, changed[i].at);
        bytes += changed[i].n;
    }
    return rc ? rc : exti__posix_write_at(c->fd, bytes, c->size - c->kept, c->kept);
}

int exti__fs_clone_edited(const char *path, const struct exti_fs_source *source, size_t size,
                          const struct exti_range *changed, size_t count, const uint8_t *bytes,
                          uint32_t flags, struct exti_error *err)
{
    struct exti_fs_clone c = {.size = size, .kept = source->kept, .fd = -1};
    int from = open(source->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), rc;

    if (from < 0)
        return exti__fail_io(err, errno, source->path, "cannot open file");
    if (source->left_out)
        c.left_out = *source->left_out;
    rc = exti__posix_create_temp(path, O_WRONLY, flags, &c.temp, &c.fd, err);
    if (!rc) {
        rc = copy_kept(from, source, &c, path, err);
        if (!rc && write_edits(&c, changed, count, bytes) != 0)
            rc = exti__fail_io(err, errno, path, "cannot write %zu bytes", size);
        rc = exti__posix_finish_temp(c.fd, c.temp, path, size, flags, rc, err);
        exti__free(c.temp);
    }
    close(from);
    return rc;
}

/* ESTALE: it is another file, or somebody has changed it. */
static int open_again(const char *path, const struct exti_file_id *id, int *out,
                      struct exti_error *err)
{
    const int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    struct exti_file_id now;
    struct stat st;
    int rc = 0;

    if (fd < 0)
        return exti__fail_io(err, errno, path, "cannot open file");
    if (fstat(fd, &st) != 0)
        rc = exti__fail_io(err, errno, path, "cannot look up file");
    else
        now = exti__posix_id_of(&st);
    if (!rc && (!exti__fs_same_id(&now, id) || st.st_uid != geteuid()))
        rc = exti__fail_io(err, ESTALE, path, "has changed since it was made");
    if (rc)
        close(fd);
    *out = fd;
    return rc;
}

int exti__fs_clone_again(const char *from, const struct exti_file_id *id, const char *path,
                         size_t kept, size_t size, const struct exti_range *changed, size_t count,
                         const uint8_t *bytes, struct exti_error *err)
{
    struct exti_fs_clone c = {.size = size, .kept = kept};
    int rc = open_again(from, id, &c.fd, err);

    if (rc)
        return rc;
    if (write_edits(&c, changed, count, bytes) != 0)
        rc = exti__fail_io(err, errno, path, "cannot write %zu bytes", size);
    if (close(c.fd) != 0 && errno != EINTR && !rc)
        rc = exti__fail_io(err, errno, path, "cannot write %zu bytes", size);
    if (!rc && rename(from, path) != 0)
        rc = exti__fail_io(err, errno, path, "cannot move %s to this name", from);
    if (rc)
        unlink(from);
    return rc;
}

void exti__fs_clone_drop(struct exti_fs_clone *c)
{
    if (c->temp) {
        close(c->fd);
        unlink(c->temp);
    }
    exti__free(c->temp);
    exti__fs_unmap(&c->image);
    *c = (struct exti_fs_clone){.fd = -1};
}
