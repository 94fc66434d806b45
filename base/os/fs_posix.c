#define _GNU_SOURCE /* copy_file_range */
#include "base/os/fs_priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#ifdef __linux__
#include <sys/sendfile.h>
#endif
#include <sys/stat.h>
#if defined(__APPLE__)
#include <sys/sysctl.h>
#endif
#include <unistd.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/mem.h"

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

static int check_regular(const struct stat *st, const char *path, struct exti_error *err)
{
    if (S_ISREG(st->st_mode))
        return 0;
    exti__fail(err, EXTI_E_IO, EXTI_NO_OFFSET, "%s, not a regular file", file_kind(st->st_mode));
    if (err && S_ISDIR(st->st_mode))
        err->os_error = EISDIR;
    exti__error_file(err, path);
    return EXTI_E_IO;
}

static struct exti_file_id id_of(const struct stat *st)
{
#ifdef __APPLE__
    struct timespec mtime = st->st_mtimespec;
#else
    struct timespec mtime = st->st_mtim;
#endif

    return (struct exti_file_id){
        .size = (uint64_t)st->st_size,
        .inode = (uint64_t)st->st_ino,
        .device = (uint64_t)st->st_dev,
        .mtime_ns = (int64_t)mtime.tv_sec * 1000000000 + mtime.tv_nsec,
        .mode = st->st_mode & 0777,
    };
}

int exti__fs_id(const char *path, struct exti_file_id *out, struct exti_error *err)
{
    struct stat st;
    int rc;

    if (stat(path, &st) != 0)
        return exti__fail_io(err, errno, path, "cannot look up file");
    rc = check_regular(&st, path, err);
    if (rc)
        return rc;
    *out = id_of(&st);
    return 0;
}

/* O_NONBLOCK because opening a FIFO would otherwise wait for a writer; it means nothing to the
 * regular files that check_regular lets pass. */
static int open_regular(const char *path, int *out, struct stat *st, struct exti_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), rc;

    if (fd < 0)
        return exti__fail_io(err, errno, path, "cannot open file");
    rc = fstat(fd, st) != 0 ? exti__fail_io(err, errno, path, "cannot look up file")
                            : check_regular(st, path, err);
    if (rc) {
        close(fd);
        return rc;
    }
    *out = fd;
    return 0;
}

static int check_mappable(const struct stat *st, const char *path, struct exti_error *err)
{
    uint64_t size = (uint64_t)st->st_size;
    int rc = 0;

    if (!size)
        rc = exti__fail(err, EXTI_E_FORMAT, 0, "file is empty");
    else if (size > EXTI_MAX_INPUT || size > SIZE_MAX / 2)
        rc = exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                        "file has %" PRIu64 " bytes, the limit is %" PRIu64, size, EXTI_MAX_INPUT);
    if (rc)
        exti__error_file(err, path);
    return rc;
}

static int open_mappable(const char *path, int *out, struct stat *st, struct exti_error *err)
{
    int rc = open_regular(path, out, st, err);

    if (rc)
        return rc;
    rc = check_mappable(st, path, err);
    if (rc)
        close(*out);
    return rc;
}

/* So little is read: that costs less than mapping it, its page faults and, where there are threads, the
 * interrupts by which other processors learn that it is unmapped. */
#define READ_LIMIT ((size_t)256 << 10)

static int read_exactly(int fd, const char *path, uint8_t *p, size_t n, struct exti_error *err)
{
    while (n) {
        ssize_t got = read(fd, p, n);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return exti__fail_io(err, errno, path, "cannot read file");
        if (!got)
            return exti__fail_io(err, ESTALE, path, "changed while it was read");
        p += got;
        n -= (size_t)got;
    }
    return 0;
}

/* Bytes of the file, and `room` more. */
static int read_image(int fd, const char *path, size_t size, size_t room, struct exti_mapping *out,
                      struct exti_error *err)
{
    uint8_t *p = exti__alloc(size + room);
    int rc;

    if (!p)
        return exti__fail_nomem(err);
    rc = read_exactly(fd, path, p, size, err);
    if (rc) {
        exti__free(p);
        return rc;
    }
    memset(p + size, 0, room);
    *out = (struct exti_mapping){p, size, 0};
    return 0;
}

/* A mapping follows the file.  One that is replaced by rename, as package managers and we do it,
 * stays whole for as long as it is mapped.  One that is written in place can show old and new bytes
 * at once, which the caller finds by comparing exti__fs_id before and after.  One that is truncated
 * in place raises SIGBUS at the first touch past its new end: nothing here protects from that, since
 * a library cannot own the process's signal handler and reading the bytes instead would cost every
 * caller a second copy. */
static int map_file(int fd, const char *path, size_t size, struct exti_mapping *out,
                    struct exti_error *err)
{
    void *p = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);

    if (p == MAP_FAILED)
        return exti__fail_io(err, errno, path, "cannot map file");
    *out = (struct exti_mapping){p, size, size};
    return 0;
}

int exti__fs_map(const char *path, struct exti_mapping *out, struct exti_file_id *id,
                 struct exti_error *err)
{
    struct stat st;
    int fd, rc = open_mappable(path, &fd, &st, err);

    if (rc)
        return rc;
    if ((size_t)st.st_size <= READ_LIMIT)
        rc = read_image(fd, path, (size_t)st.st_size, 0, out, err);
    else
        rc = map_file(fd, path, (size_t)st.st_size, out, err);
    close(fd);
    if (rc == 0 && id)
        *id = id_of(&st);
    return rc;
}

/* Bytes of a mapping that holds `size` bytes of file and `room` more. */
static int mapping_size(uint64_t size, uint64_t room, size_t *out, struct exti_error *err)
{
    uint64_t total;

    if (!exti__add(size, room, &total) ||
        !exti__align(total, (uint64_t)sysconf(_SC_PAGESIZE), &total) || total > SIZE_MAX / 2)
        return exti__fail(err, EXTI_E_NOMEM, EXTI_NO_OFFSET,
                          "%" PRIu64 " bytes and %" PRIu64 " more do not fit in memory", size,
                          room);
    *out = (size_t)total;
    return 0;
}

/* The image shares the file's cached pages until one is written to, so it costs memory only for the
 * pages that the edits touch. */
static int map_image(int fd, const struct stat *st, const char *path, uint64_t room,
                     struct exti_mapping *out, struct exti_error *err)
{
    size_t size = (size_t)st->st_size, page = (size_t)sysconf(_SC_PAGESIZE), mapped = 0;
    uint8_t *p;
    int rc = mapping_size(size, room, &mapped, err);

    if (rc)
        return rc;
    if (mapped <= READ_LIMIT)
        return read_image(fd, path, size, (size_t)room, out, err);
    p = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return exti__fail_io(err, errno, path, "cannot reserve %zu bytes of memory", mapped);
    if (mmap(p, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED) {
        rc = exti__fail_io(err, errno, path, "cannot map file");
        munmap(p, mapped);
        return rc;
    }
    /* The last page's bytes past the end of the file are zeros only if no one has written to them
     * through a shared mapping. */
    if (room && size % page)
        memset(p + size, 0, page - size % page);
    *out = (struct exti_mapping){p, size, mapped};
    return 0;
}

int exti__fs_map_copy(const char *path, const struct exti_file_id *id, uint64_t room,
                      struct exti_mapping *out, struct exti_error *err)
{
    struct exti_file_id now;
    struct stat st;
    int fd, rc = open_mappable(path, &fd, &st, err);

    if (rc)
        return rc;
    now = id_of(&st);
    if (exti__fs_same_id(&now, id))
        rc = map_image(fd, &st, path, room, out, err);
    else
        rc = exti__fail_io(err, ESTALE, path, "changed while it was read");
    if (rc)
        exti__error_file(err, path);
    close(fd);
    return rc;
}

void exti__fs_unmap(struct exti_mapping *m)
{
    if (m->mapped)
        munmap(m->p, m->mapped);
    else
        exti__free(m->p);
    *m = (struct exti_mapping){0};
}

static int write_all(int fd, const uint8_t *p, size_t n)
{
    while (n) {
        /* Linux writes at most 2 GiB a call; macOS refuses more. */
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

/* An image is written out as a whole, and write(2) is half as fast where it has to fault every page
 * in.  Reading one byte maps the cached pages around it, on Linux all of 64 KiB, and so costs half as
 * much as MADV_POPULATE_READ, which goes page by page. */
static void map_pages(const volatile uint8_t *p, size_t n)
{
    for (size_t at = 0; at < n; at += (size_t)1 << 16)
        (void)p[at];
}

#ifdef __linux__
/* copy_file_range(2) does not go from one file system to another of a different type; sendfile(2) does. */
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

/* The kernel copies cached pages in less than half the time that mapping and writing them takes, and
 * some file systems share them.  The bytes are those that were looked at as long as the file is the
 * same version afterwards.  Whatever stops this, writing the image does as well or tells. */
static int copy_image(int fd, const uint8_t *p, size_t n, const struct exti_fs_source *s)
{
    struct exti_file_id before, after;
    struct stat st;
    int from = open(s->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), rc = -1;

    if (from < 0)
        return -1;
    if (fstat(from, &st) == 0) {
        before = id_of(&st);
        if (exti__fs_same_id(&before, s->id))
            rc = copy_edited(from, fd, p, n, s);
    }
    if (rc == 0 && fstat(from, &st) == 0) {
        after = id_of(&st);
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

/* Fills the empty file. */
static int write_image(int fd, const uint8_t *p, size_t n, const struct exti_fs_source *from)
{
    if (from && copy_image(fd, p, n, from) == 0)
        return 0;
    if (from && (ftruncate(fd, 0) != 0 || lseek(fd, 0, SEEK_SET) != 0))
        return -1;
    map_pages(p, n);
    return write_all(fd, p, n);
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
    /* EINVAL: the file system has no way to sync a folder, and so no need. */
    if (fd < 0 || (fsync(fd) != 0 && errno != EINVAL))
        rc = exti__fail_io(err, errno, dir, "cannot sync folder");
    if (fd >= 0)
        close(fd);
    exti__free(dir);
    return rc;
}

/* Fills and names a file that was just created as `temp`; closes `fd`. */
static int finish_replace(int fd, const char *temp, const char *path, const void *p, size_t n,
                          const struct exti_fs_source *from, uint32_t flags, struct exti_error *err)
{
    int rc = 0;

    if (write_image(fd, p, n, from) != 0)
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

int exti__fs_random(void *p, size_t n, const char *use, struct exti_error *err)
{
    return getentropy(p, n) ? exti__fail_io(err, errno, "", "cannot get random bytes for %s", use)
                            : 0;
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
        rc = finish_replace(fd, temp, path, p, n, from, flags, err);
    exti__free(temp);
    return rc;
}

/* Reads until the end or until more than `max` bytes are there; *buf has room for one more byte. */
static int read_all(int fd, const char *path, size_t max, size_t guess, char **buf, size_t *n,
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

int exti__fs_read(const char *path, size_t max, char **out, size_t *n, struct exti_error *err)
{
    struct stat st;
    size_t have = 0;
    char *buf = NULL;
    int fd, rc = open_regular(path, &fd, &st, err);

    if (rc)
        return rc;
    rc = read_all(fd, path, max, (uint64_t)st.st_size < max ? (size_t)st.st_size : max, &buf, &have,
                  err);
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

int exti__fs_mkdir(const char *path, bool *made, struct exti_error *err)
{
    struct stat st;

    if (mkdir(path, 0777) == 0) {
        *made = true;
        return 0;
    }
    if (errno != EEXIST)
        return exti__fail_io(err, errno, path, "cannot make folder");
    if (stat(path, &st) != 0)
        return exti__fail_io(err, errno, path, "cannot look up folder");
    if (!S_ISDIR(st.st_mode))
        return exti__fail_io(err, ENOTDIR, path, "cannot make folder, a file has its name");
    *made = false;
    return 0;
}

int exti__fs_mkdtemp(char **out, struct exti_error *err)
{
    const char *base = getenv("TMPDIR");
    char *path;
    int rc;

    /* A relative one would make the folder's name depend on the working directory. */
    if (!base || base[0] != '/')
        base = "/tmp";
    path = exti__path_join(base, "exti-XXXXXX");
    if (!path)
        return exti__fail_nomem(err);
    if (!mkdtemp(path)) {
        rc = exti__fail_io(err, errno, base, "cannot make a temporary folder here");
        exti__free(path);
        return rc;
    }
    rc = exti__fs_realpath(path, out, err);
    if (rc)
        rmdir(path);
    exti__free(path);
    return rc;
}

int exti__fs_remove(const char *path, struct exti_error *err)
{
    if (unlink(path) == 0 || errno == ENOENT)
        return 0;
    return exti__fail_io(err, errno, path, "cannot remove file");
}

void exti__fs_discard(const char *path)
{
    exti__fs_remove(path, NULL);
}

int exti__fs_rmdir(const char *path, bool *removed, struct exti_error *err)
{
    bool done = rmdir(path) == 0;

    if (!done && errno != ENOTEMPTY && errno != EEXIST && errno != ENOENT)
        return exti__fail_io(err, errno, path, "cannot remove folder");
    *removed = done;
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

int exti__fs_list(const char *dir, int (*each)(void *user, const char *name), void *user,
                  struct exti_error *err)
{
    DIR *d = opendir(dir);
    struct dirent *entry;
    int rc = 0;

    if (!d)
        return exti__fail_io(err, errno, dir, "cannot open folder");
    for (errno = 0; !rc && (entry = readdir(d)) != NULL; errno = 0) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            rc = each(user, entry->d_name);
    }
    if (!rc && errno)
        rc = exti__fail_io(err, errno, dir, "cannot read folder");
    closedir(d);
    return rc;
}

/* Whether `path` still names the locked file.  It does not when the lock's last holder removed it:
 * then the next to come creates another file and would not meet us. */
static bool still_named(int fd, const char *path)
{
    struct stat ours, named;

    return fstat(fd, &ours) == 0 && stat(path, &named) == 0 && ours.st_ino == named.st_ino &&
           ours.st_dev == named.st_dev;
}

/* O_NOFOLLOW: a lock is written to, and who put a link in its place may not aim that at another file.
 * Where nothing can be written, flock is content with reading. */
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

/* flock, not fcntl: its owner is the open file, so that it also holds between threads, and no other
 * descriptor's close releases it. */
int exti__fs_lock(const char *path, struct exti_lock *out, struct exti_error *err)
{
    for (;;) {
        bool made;
        int fd = open_lock(path, &made), rc;

        if (fd < 0 && errno == EEXIST) /* and removed since */
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
        write_all(lock->fd, (const uint8_t *)text, strlen(text)) != 0)
        return exti__fail_io(err, errno, "", "cannot write the lock file");
    return 0;
}

/* Unlocks before closing: a child forked meanwhile shares the open file and would go on holding it. */
void exti__fs_unlock(struct exti_lock *lock)
{
    if (lock->fd < 0)
        return;
    flock(lock->fd, LOCK_UN);
    close(lock->fd);
    lock->fd = -1;
}

#if defined(__APPLE__)
static void read_boot(char *id, size_t cap)
{
    if (sysctlbyname("kern.bootsessionuuid", id, &cap, NULL, 0))
        id[0] = 0;
}
#else
static void read_boot(char *id, size_t cap)
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return;
    if (read(fd, id, cap) < 0)
        id[0] = 0;
    close(fd);
}
#endif

int exti__fs_boot(char *out, size_t cap)
{
    char id[64] = {0};
    size_t n;

    read_boot(id, sizeof id - 1);
    n = strcspn(id, "\n");
    if (n >= cap)
        return EXTI_E_ARG;
    memcpy(out, id, n);
    out[n] = 0;
    return 0;
}
