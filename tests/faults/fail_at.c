/* Preloaded.  Makes system calls of the program fail: FAIL_CALL=KIND:N:ERRNO lets the N-th call of a
 * kind fail, and "KIND:N:ERRNO:on" all from then on, as a full table of files would.  N is 0: none
 * fails.  FAIL_IN counts only calls on paths with this text.  FAIL_COUNT is a file for the number of
 * calls of each kind; FAIL_LOG one for what failed.  FAIL_PROGRAM names the program if it is not
 * extisolate.
 *
 * FAIL_CALL=any:N:0:die kills the process instead, at the N-th call of all kinds and a write
 * halfway; "change" counts only calls that change files or folders.
 *
 * Only calls that go through the C library's names are seen: not those that it makes itself. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KINDS(X)                                                                                   \
    X(open)                                                                                        \
    X(read)                                                                                        \
    X(write)                                                                                       \
    X(stat)                                                                                        \
    X(mmap)                                                                                        \
    X(mprotect)                                                                                    \
    X(rename)                                                                                      \
    X(copy)                                                                                        \
    X(truncate)                                                                                    \
    X(sync)                                                                                        \
    X(seek)                                                                                        \
    X(mkdir)                                                                                       \
    X(unlink)                                                                                      \
    X(rmdir)                                                                                       \
    X(opendir)                                                                                     \
    X(readdir)                                                                                     \
    X(realpath)                                                                                    \
    X(lock)                                                                                        \
    X(random)                                                                                      \
    X(close)                                                                                       \
    X(memfd)                                                                                       \
    X(thread)                                                                                      \
    X(spawn)                                                                                       \
    X(pipe)

enum kind {
#define MEMBER(k) KIND_##k,
    KINDS(MEMBER)
#undef MEMBER
        KIND_COUNT
};

static const char *const names[] = {
#define NAME(k) #k,
    KINDS(NAME)
#undef NAME
};

/* Those of which one can die: all, and those that change something. */
static const struct {
    const char *name;
    unsigned long kinds;
} groups[] = {
    {"any", ~0ul},
    {"change", 1ul << KIND_write | 1ul << KIND_rename | 1ul << KIND_copy | 1ul << KIND_truncate |
                   1ul << KIND_sync | 1ul << KIND_mkdir | 1ul << KIND_unlink | 1ul << KIND_rmdir},
};

static struct {
    bool on, ended, forever, die;
    unsigned long kinds; /* a bit for each that counts */
    const char *group;
    long at;
    int error;
    const char *in, *count_to;
    int log;
} plan = {.log = -1};

static atomic_long counts[KIND_COUNT], group_count;

#define NEXT(type, name) ((type)dlsym(RTLD_NEXT, name))

__attribute__((constructor)) static void read_plan(void)
{
    const char *call = getenv("FAIL_CALL"), *log = getenv("FAIL_LOG");
    const char *program = getenv("FAIL_PROGRAM");
    char kind[16] = "", mode[4] = "";

    /* Programs that it starts are left alone. */
    if (!call || strcmp(program_invocation_short_name, program ? program : "extisolate") != 0 ||
        sscanf(call, "%15[a-z]:%ld:%d:%3s", kind, &plan.at, &plan.error, mode) < 3)
        return;
    for (int k = 0; k < KIND_COUNT; k++)
        if (strcmp(names[k], kind) == 0)
            plan.kinds = 1ul << k;
    plan.die = strcmp(mode, "die") == 0;
    for (size_t k = 0; k < sizeof groups / sizeof *groups && plan.die; k++)
        if (strcmp(groups[k].name, kind) == 0) {
            plan.kinds = groups[k].kinds;
            plan.group = groups[k].name;
        }
    plan.forever = strcmp(mode, "on") == 0;
    plan.in = getenv("FAIL_IN");
    plan.count_to = getenv("FAIL_COUNT");
    if (log)
        plan.log = (int)syscall(SYS_openat, AT_FDCWD, log,
                                O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    plan.on = true;
}

__attribute__((destructor)) static void tell_counts(void)
{
    char text[1024];
    size_t n = 0;
    int fd;

    if (!plan.on || !plan.count_to)
        return;
    if (plan.group)
        n = (size_t)snprintf(text, sizeof text, "%s %ld\n", plan.group, atomic_load(&group_count));
    for (int k = 0; k < KIND_COUNT && !plan.group; k++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s %ld\n", names[k],
                              atomic_load(&counts[k]));
    fd = (int)syscall(SYS_openat, AT_FDCWD, plan.count_to, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    syscall(SYS_write, fd, text, n);
    syscall(SYS_close, fd);
}

/* For builds that count coverage: their counts are written behind the program's back. */
void exti_faults_end(void)
{
    plan.ended = true;
}

static void die(void)
{
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

/* The number of this call among those that count. */
static long number_of(enum kind kind)
{
    const long n = atomic_fetch_add(&counts[kind], 1) + 1;

    if (!plan.group)
        return n;
    return plan.kinds >> kind & 1 ? atomic_fetch_add(&group_count, 1) + 1 : 0;
}

/* Whether this call is to fail, with errno.  Of those that die, writes and copies come back, to do
 * half of it before. */
static bool fails(enum kind kind, const char *path)
{
    const int was = errno;
    bool now;
    long n;

    if (!plan.on || plan.ended || (plan.in && (!path || !strstr(path, plan.in))))
        return false;
    n = number_of(kind);
    now = plan.kinds >> kind & 1 && plan.at && (n == plan.at || (plan.forever && n > plan.at));
    if (now && plan.log >= 0) {
        char text[PATH_MAX + 64];
        int size = snprintf(text, sizeof text, "%s %s\n", names[kind], path ? path : "");

        syscall(SYS_write, plan.log, text, (size_t)size);
    }
    if (now && plan.die && kind != KIND_write && kind != KIND_copy)
        die();
    errno = now ? plan.error : was;
    return now;
}

static bool fd_fails(enum kind kind, int fd)
{
    char link[32], path[PATH_MAX] = "";
    long n;

    if (!plan.on || plan.ended || (fd >= 0 && fd <= 2) || fd == plan.log)
        return false;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = fd < 0 ? 0 : syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    return fails(kind, path);
}

/* ---- paths ---- */

/* The argument behind `flags`, which a call has only if it may create the file. */
#define READ_MODE(mode, flags)                                                                     \
    if ((flags) & (O_CREAT | O_TMPFILE)) {                                                         \
        va_list args;                                                                              \
        va_start(args, flags);                                                                     \
        (mode) = va_arg(args, mode_t);                                                             \
        va_end(args);                                                                              \
    }

#define OPEN(name)                                                                                 \
    int name(const char *path, int flags, ...)                                                     \
    {                                                                                              \
        mode_t mode = 0;                                                                           \
        READ_MODE(mode, flags);                                                                    \
        return fails(KIND_open, path)                                                              \
                   ? -1                                                                            \
                   : NEXT(int (*)(const char *, int, ...), #name)(path, flags, mode);              \
    }
OPEN(open)
OPEN(open64)

/* The names ending in _2 and _chk are those of programs built with _FORTIFY_SOURCE. */
#define OPEN_2(name)                                                                               \
    int name(const char *path, int flags)                                                          \
    {                                                                                              \
        return fails(KIND_open, path) ? -1 : NEXT(int (*)(const char *, int), #name)(path, flags); \
    }
OPEN_2(__open_2)
OPEN_2(__open64_2)

#define OPENAT(name)                                                                               \
    int name(int dir, const char *path, int flags, ...)                                            \
    {                                                                                              \
        mode_t mode = 0;                                                                           \
        READ_MODE(mode, flags);                                                                    \
        return fails(KIND_open, path)                                                              \
                   ? -1                                                                            \
                   : NEXT(int (*)(int, const char *, int, ...), #name)(dir, path, flags, mode);    \
    }
OPENAT(openat)
OPENAT(openat64)

#define OPENAT_2(name)                                                                             \
    int name(int dir, const char *path, int flags)                                                 \
    {                                                                                              \
        return fails(KIND_open, path)                                                              \
                   ? -1                                                                            \
                   : NEXT(int (*)(int, const char *, int), #name)(dir, path, flags);               \
    }
OPENAT_2(__openat_2)
OPENAT_2(__openat64_2)

#define FOPEN(name)                                                                                \
    FILE *name(const char *path, const char *mode)                                                 \
    {                                                                                              \
        return fails(KIND_open, path)                                                              \
                   ? NULL                                                                          \
                   : NEXT(FILE * (*)(const char *, const char *), #name)(path, mode);              \
    }
FOPEN(fopen)
FOPEN(fopen64)

#define STAT(name, type)                                                                           \
    int name(const char *restrict path, struct type *restrict out)                                 \
    {                                                                                              \
        return fails(KIND_stat, path)                                                              \
                   ? -1                                                                            \
                   : NEXT(int (*)(const char *, struct type *), #name)(path, out);                 \
    }
STAT(stat, stat)
STAT(stat64, stat64)
STAT(lstat, stat)
STAT(lstat64, stat64)

int fstatat(int dir, const char *restrict path, struct stat *restrict out, int flags)
{
    return fails(KIND_stat, path) ? -1
                                  : NEXT(int (*)(int, const char *, struct stat *, int),
                                         "fstatat")(dir, path, out, flags);
}

#define PATH_CALL(name, kind)                                                                      \
    int name(const char *path)                                                                     \
    {                                                                                              \
        return fails(KIND_##kind, path) ? -1 : NEXT(int (*)(const char *), #name)(path);           \
    }
PATH_CALL(unlink, unlink)
PATH_CALL(rmdir, rmdir)

int mkdir(const char *path, mode_t mode)
{
    return fails(KIND_mkdir, path) ? -1 : NEXT(int (*)(const char *, mode_t), "mkdir")(path, mode);
}

char *mkdtemp(char *path)
{
    return fails(KIND_mkdir, path) ? NULL : NEXT(char *(*)(char *), "mkdtemp")(path);
}

int rename(const char *from, const char *to)
{
    return fails(KIND_rename, to) ? -1
                                  : NEXT(int (*)(const char *, const char *), "rename")(from, to);
}

char *realpath(const char *restrict path, char *restrict out)
{
    return fails(KIND_realpath, path)
               ? NULL
               : NEXT(char *(*)(const char *, char *), "realpath")(path, out);
}

char *__realpath_chk(const char *path, char *out, size_t room)
{
    return fails(KIND_realpath, path)
               ? NULL
               : NEXT(char *(*)(const char *, char *, size_t), "__realpath_chk")(path, out, room);
}

/* ---- folders ---- */

DIR *opendir(const char *path)
{
    return fails(KIND_opendir, path) ? NULL : NEXT(DIR * (*)(const char *), "opendir")(path);
}

#define READDIR(name, type)                                                                        \
    struct type *name(DIR *d)                                                                      \
    {                                                                                              \
        return fd_fails(KIND_readdir, dirfd(d)) ? NULL : NEXT(struct type * (*)(DIR *), #name)(d); \
    }
READDIR(readdir, dirent)
READDIR(readdir64, dirent64)

/* ---- open files ---- */

#define FSTAT(name, type)                                                                          \
    int name(int fd, struct type *out)                                                             \
    {                                                                                              \
        return fd_fails(KIND_stat, fd) ? -1 : NEXT(int (*)(int, struct type *), #name)(fd, out);   \
    }
FSTAT(fstat, stat)
FSTAT(fstat64, stat64)

ssize_t read(int fd, void *p, size_t n)
{
    return fd_fails(KIND_read, fd) ? -1 : NEXT(ssize_t(*)(int, void *, size_t), "read")(fd, p, n);
}

ssize_t __read_chk(int fd, void *p, size_t n, size_t room)
{
    return fd_fails(KIND_read, fd)
               ? -1
               : NEXT(ssize_t(*)(int, void *, size_t, size_t), "__read_chk")(fd, p, n, room);
}

#define PREAD(name, type)                                                                          \
    ssize_t name(int fd, void *p, size_t n, type at)                                               \
    {                                                                                              \
        return fd_fails(KIND_read, fd)                                                             \
                   ? -1                                                                            \
                   : NEXT(ssize_t(*)(int, void *, size_t, type), #name)(fd, p, n, at);             \
    }
#define PREAD_CHK(name, type)                                                                      \
    ssize_t name(int fd, void *p, size_t n, type at, size_t room)                                  \
    {                                                                                              \
        return fd_fails(KIND_read, fd) ? -1                                                        \
                                       : NEXT(ssize_t(*)(int, void *, size_t, type, size_t),       \
                                              #name)(fd, p, n, at, room);                          \
    }
PREAD(pread, off_t)
PREAD_CHK(__pread_chk, off_t)
PREAD_CHK(__pread64_chk, off64_t)
PREAD(pread64, off64_t)

/* The call with half of its bytes, then the end; or an error. */
#define FAIL_WRITE(half)                                                                           \
    do {                                                                                           \
        if (plan.die) {                                                                            \
            half;                                                                                  \
            die();                                                                                 \
        }                                                                                          \
        return -1;                                                                                 \
    } while (0)

ssize_t write(int fd, const void *p, size_t n)
{
    ssize_t (*next)(int, const void *, size_t) =
        NEXT(ssize_t(*)(int, const void *, size_t), "write");

    if (fd_fails(KIND_write, fd))
        FAIL_WRITE(next(fd, p, n / 2));
    return next(fd, p, n);
}

#define PWRITE(name, type)                                                                         \
    ssize_t name(int fd, const void *p, size_t n, type at)                                         \
    {                                                                                              \
        ssize_t (*next)(int, const void *, size_t, type) =                                         \
            NEXT(ssize_t(*)(int, const void *, size_t, type), #name);                              \
        if (fd_fails(KIND_write, fd))                                                              \
            FAIL_WRITE(next(fd, p, n / 2, at));                                                    \
        return next(fd, p, n, at);                                                                 \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

ssize_t copy_file_range(int from, off64_t *at, int to, off64_t *where, size_t n, unsigned flags)
{
    ssize_t (*next)(int, off64_t *, int, off64_t *, size_t, unsigned) =
        NEXT(ssize_t(*)(int, off64_t *, int, off64_t *, size_t, unsigned), "copy_file_range");

    if (fd_fails(KIND_copy, to))
        FAIL_WRITE(next(from, at, to, where, n / 2, flags));
    return next(from, at, to, where, n, flags);
}

#define SENDFILE(name, type)                                                                       \
    ssize_t name(int to, int from, type *at, size_t n)                                             \
    {                                                                                              \
        ssize_t (*next)(int, int, type *, size_t) =                                                \
            NEXT(ssize_t(*)(int, int, type *, size_t), #name);                                     \
        if (fd_fails(KIND_copy, to))                                                               \
            FAIL_WRITE(next(to, from, at, n / 2));                                                 \
        return next(to, from, at, n);                                                              \
    }
SENDFILE(sendfile, off_t)
SENDFILE(sendfile64, off64_t)

#define TRUNCATE(name, type)                                                                       \
    int name(int fd, type n)                                                                       \
    {                                                                                              \
        return fd_fails(KIND_truncate, fd) ? -1 : NEXT(int (*)(int, type), #name)(fd, n);          \
    }
TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)

int fsync(int fd)
{
    return fd_fails(KIND_sync, fd) ? -1 : NEXT(int (*)(int), "fsync")(fd);
}

#define SEEK(name, type)                                                                           \
    type name(int fd, type at, int from)                                                           \
    {                                                                                              \
        return fd_fails(KIND_seek, fd) ? -1 : NEXT(type(*)(int, type, int), #name)(fd, at, from);  \
    }
SEEK(lseek, off_t)
SEEK(lseek64, off64_t)

int flock(int fd, int how)
{
    return fd_fails(KIND_lock, fd) ? -1 : NEXT(int (*)(int, int), "flock")(fd, how);
}

/* The file is closed all the same, as on Linux. */
int close(int fd)
{
    bool failed = fd_fails(KIND_close, fd);
    int error = errno, rc = NEXT(int (*)(int), "close")(fd);

    if (!failed)
        return rc;
    errno = error;
    return -1;
}

/* ---- memory ---- */

#define MMAP(name, type)                                                                           \
    void *name(void *at, size_t n, int access, int flags, int fd, type from)                       \
    {                                                                                              \
        return fd_fails(KIND_mmap, fd) ? MAP_FAILED                                                \
                                       : NEXT(void *(*)(void *, size_t, int, int, int, type),      \
                                              #name)(at, n, access, flags, fd, from);              \
    }
MMAP(mmap, off_t)
MMAP(mmap64, off64_t)

int mprotect(void *at, size_t n, int access)
{
    return fails(KIND_mprotect, "") ? -1
                                    : NEXT(int (*)(void *, size_t, int), "mprotect")(at, n, access);
}

int memfd_create(const char *name, unsigned flags)
{
    return fails(KIND_memfd, name)
               ? -1
               : NEXT(int (*)(const char *, unsigned), "memfd_create")(name, flags);
}

/* ---- the rest ---- */

int getentropy(void *p, size_t n)
{
    return fails(KIND_random, "") ? -1 : NEXT(int (*)(void *, size_t), "getentropy")(p, n);
}

ssize_t getrandom(void *p, size_t n, unsigned flags)
{
    return fails(KIND_random, "")
               ? -1
               : NEXT(ssize_t(*)(void *, size_t, unsigned), "getrandom")(p, n, flags);
}

int pthread_create(pthread_t *restrict t, const pthread_attr_t *restrict a, void *(*run)(void *),
                   void *restrict user)
{
    if (fails(KIND_thread, ""))
        return errno;
    return NEXT(int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *),
                "pthread_create")(t, a, run, user);
}

int posix_spawnp(pid_t *restrict pid, const char *restrict file,
                 const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *restrict attributes, char *const argv[restrict],
                 char *const envp[restrict])
{
    if (fails(KIND_spawn, file))
        return errno;
    return NEXT(int (*)(pid_t *, const char *, const posix_spawn_file_actions_t *,
                        const posix_spawnattr_t *, char *const[], char *const[]),
                "posix_spawnp")(pid, file, actions, attributes, argv, envp);
}

int pipe(int fds[2])
{
    return fails(KIND_pipe, "") ? -1 : NEXT(int (*)(int *), "pipe")(fds);
}
