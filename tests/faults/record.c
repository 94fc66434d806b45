/* Preloaded.  Writes to RECORD_LOG what the program does to the files and folders below RECORD_TOP, so that a power loss
 * at any point can be made up from it.  Each new file is kept in RECORD_KEEP, under the number of its inode, as files are
 * not written to once they have got their name.  BOOT_ID names the file that is read in place of the system's boot id.
 *
 *   mkdir PATH | create INODE PATH | write INODE | sync INODE | syncdir PATH | rename FROM TO | unlink PATH | rmdir PATH */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NEXT(type, name) ((type)dlsym(RTLD_NEXT, name))

static void record(const char *fmt, ...)
{
    const char *to = getenv("RECORD_LOG");
    const int was = errno;
    char line[2 * PATH_MAX + 64];
    va_list args;
    int n, fd;

    if (!to)
        return;
    va_start(args, fmt);
    n = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    fd = (int)syscall(SYS_openat, AT_FDCWD, to, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    syscall(SYS_write, fd, line, (size_t)n);
    syscall(SYS_close, fd);
    errno = was;
}

/* The absolute path, if it is below RECORD_TOP; relative ones are taken from the working folder. */
static const char *path_below(const char *path, char full[PATH_MAX])
{
    const char *top = getenv("RECORD_TOP");
    char folder[PATH_MAX / 2];

    if (!top)
        return NULL;
    if (path[0] == '/')
        snprintf(full, PATH_MAX, "%s", path);
    else if (getcwd(folder, sizeof folder))
        snprintf(full, PATH_MAX, "%s/%s", folder, path);
    else
        return NULL;
    return strncmp(full, top, strlen(top)) == 0 ? full : NULL;
}

static const char *fd_path(int fd, char full[PATH_MAX])
{
    char link[32], path[PATH_MAX];
    ssize_t n;

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
    if (n <= 0)
        return NULL;
    path[n] = 0;
    return path_below(path, full);
}

static void record_fd(const char *what, int fd)
{
    char full[PATH_MAX];
    struct stat st;

    if (fd_path(fd, full) && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        record("%s %lu\n", what, (unsigned long)st.st_ino);
}

/* ---- names ---- */

static void keep(int fd, const char *path)
{
    const char *top = getenv("RECORD_KEEP");
    char to[PATH_MAX];
    struct stat st;

    if (!top || fstat(fd, &st) != 0)
        return;
    snprintf(to, sizeof to, "%s/%lu", top, (unsigned long)st.st_ino);
    if (linkat(AT_FDCWD, path, AT_FDCWD, to, 0) == 0)
        record("create %lu %s\n", (unsigned long)st.st_ino, path);
}

int open(const char *path, int flags, ...)
{
    int (*next)(const char *, int, ...) = NEXT(int (*)(const char *, int, ...), "open");
    const char *boot = getenv("BOOT_ID");
    char full[PATH_MAX];
    mode_t mode = 0;
    int fd;

    if (flags & O_CREAT) {
        va_list args;

        va_start(args, flags);
        mode = va_arg(args, mode_t);
        va_end(args);
    }
    if (boot && strcmp(path, "/proc/sys/kernel/random/boot_id") == 0)
        path = boot;
    fd = next(path, flags, mode);
    if (fd >= 0 && flags & O_CREAT && path_below(path, full))
        keep(fd, full);
    return fd;
}

int mkdir(const char *path, mode_t mode)
{
    char full[PATH_MAX];
    int rc = NEXT(int (*)(const char *, mode_t), "mkdir")(path, mode);

    if (rc == 0 && path_below(path, full))
        record("mkdir %s\n", full);
    return rc;
}

#define REMOVE(name)                                                                               \
    int name(const char *path)                                                                     \
    {                                                                                              \
        char full[PATH_MAX];                                                                       \
        int rc = NEXT(int (*)(const char *), #name)(path);                                         \
        if (rc == 0 && path_below(path, full))                                                     \
            record(#name " %s\n", full);                                                           \
        return rc;                                                                                 \
    }
REMOVE(unlink)
REMOVE(rmdir)

int rename(const char *from, const char *to)
{
    char full[PATH_MAX], full_to[PATH_MAX];
    int rc = NEXT(int (*)(const char *, const char *), "rename")(from, to);

    if (rc == 0 && path_below(from, full) && path_below(to, full_to))
        record("rename %s %s\n", full, full_to);
    return rc;
}

/* ---- data ---- */

ssize_t write(int fd, const void *p, size_t n)
{
    record_fd("write", fd);
    return NEXT(ssize_t(*)(int, const void *, size_t), "write")(fd, p, n);
}

#define PWRITE(name, type)                                                                         \
    ssize_t name(int fd, const void *p, size_t n, type at)                                         \
    {                                                                                              \
        record_fd("write", fd);                                                                    \
        return NEXT(ssize_t(*)(int, const void *, size_t, type), #name)(fd, p, n, at);             \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

#define SENDFILE(name, type)                                                                       \
    ssize_t name(int to, int from, type *at, size_t n)                                             \
    {                                                                                              \
        record_fd("write", to);                                                                    \
        return NEXT(ssize_t(*)(int, int, type *, size_t), #name)(to, from, at, n);                 \
    }
SENDFILE(sendfile, off_t)
SENDFILE(sendfile64, off64_t)

ssize_t copy_file_range(int from, off64_t *at, int to, off64_t *where, size_t n, unsigned flags)
{
    record_fd("write", to);
    return NEXT(ssize_t(*)(int, off64_t *, int, off64_t *, size_t, unsigned),
                "copy_file_range")(from, at, to, where, n, flags);
}

#define TRUNCATE(name, type)                                                                       \
    int name(int fd, type n)                                                                       \
    {                                                                                              \
        record_fd("write", fd);                                                                    \
        return NEXT(int (*)(int, type), #name)(fd, n);                                             \
    }
TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)

#define SYNC(name)                                                                                 \
    int name(int fd)                                                                               \
    {                                                                                              \
        char full[PATH_MAX];                                                                       \
        struct stat st;                                                                            \
        int rc = NEXT(int (*)(int), #name)(fd);                                                    \
        if (rc == 0 && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) && fd_path(fd, full))            \
            record("syncdir %s\n", full);                                                          \
        else if (rc == 0)                                                                          \
            record_fd("sync", fd);                                                                 \
        return rc;                                                                                 \
    }
SYNC(fsync)
SYNC(fdatasync)
