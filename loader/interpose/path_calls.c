/* proc(5): /proc/self is the process's first thread, so its cwd and root are not those of a thread
 * that has its own (track/directory.h).  Other paths are passed on as they are, which costs looking
 * at two bytes. */
#define _GNU_SOURCE /* statx */
#include "loader/interpose/path_calls.h"

#include <alloca.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/track/redirects.h"
#include "loader/track/surroundings.h"

#define PROC "/proc/"
#define OF_THREAD PROC "thread-self"

static inline bool is_below_proc(const char *path)
{
    return path && path[0] == '/' && path[1] == 'p' && strncmp(path, PROC, strlen(PROC)) == 0;
}

/* Where the name of a member of the own process begins, with its slash; NULL: it is no such
 * path. */
static const char *own_member(const char *path)
{
    const char *of = path + strlen(PROC);
    char *end;

    if (strncmp(of, "self/", 5) == 0)
        return of + 4;
    if (*of < '1' || *of > '9' || strtol(of, &end, 10) != getpid() || *end != '/')
        return NULL;
    return end;
}

static bool is_place(const char *member)
{
    const size_t length = strcspn(member + 1, "/");

    return (length == 3 && strncmp(member, "/cwd", 4) == 0) ||
           (length == 4 && strncmp(member, "/root", 5) == 0);
}

#define ROOM(path) (strlen(path) + sizeof OF_THREAD)

/* The path by which the thread finds what it means; `room` has ROOM(path) bytes. */
static const char *own_path(char *room, const char *path)
{
    const char *member = own_member(path);

    if (!member || !is_place(member))
        return path;
    memcpy(room, OF_THREAD, strlen(OF_THREAD));
    memcpy(room + strlen(OF_THREAD), member, strlen(member) + 1);
    return room;
}

/* Of a function whose frame the result may lie in. */
#define OWN(path) (is_below_proc(path) ? own_path(alloca(ROOM(path)), (path)) : (path))

/* ---- opening ---- */

static mode_t mode_of(int flags, va_list ap)
{
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(ap, mode_t) : 0;
}

static int interposed_open(const char *path, int flags, ...)
{
    mode_t mode;
    va_list ap;

    va_start(ap, flags);
    mode = mode_of(flags, ap);
    va_end(ap);
    return open(OWN(path), flags, mode);
}

static int interposed_openat(int folder, const char *path, int flags, ...)
{
    mode_t mode;
    va_list ap;

    va_start(ap, flags);
    mode = mode_of(flags, ap);
    va_end(ap);
    return openat(folder, OWN(path), flags, mode);
}

/* What a compiler that checks arguments makes of the two. */
static int interposed_open_2(const char *path, int flags)
{
    return open(OWN(path), flags, 0);
}

static int interposed_openat_2(int folder, const char *path, int flags)
{
    return openat(folder, OWN(path), flags, 0);
}

static FILE *interposed_fopen(const char *path, const char *mode)
{
    return fopen(OWN(path), mode);
}

static DIR *interposed_opendir(const char *path)
{
    return opendir(OWN(path));
}

/* ---- asking ---- */

static int interposed_stat(const char *path, struct stat *out)
{
    return stat(OWN(path), out);
}

static int interposed_lstat(const char *path, struct stat *out)
{
    return lstat(OWN(path), out);
}

static int interposed_fstatat(int folder, const char *path, struct stat *out, int flags)
{
    return fstatat(folder, OWN(path), out, flags);
}

static ssize_t interposed_readlink(const char *path, char *out, size_t size)
{
    return readlink(OWN(path), out, size);
}

static ssize_t interposed_readlinkat(int folder, const char *path, char *out, size_t size)
{
    return readlinkat(folder, OWN(path), out, size);
}

static char *interposed_realpath(const char *path, char *out)
{
    return realpath(OWN(path), out);
}

/* Libraries that were built for glibc before 2.33 call these.  The version is that of the struct,
 * of which there is one on 64-bit systems. */
static int interposed_xstat(int version, const char *path, struct stat *out)
{
    (void)version;
    return stat(OWN(path), out);
}

static int interposed_lxstat(int version, const char *path, struct stat *out)
{
    (void)version;
    return lstat(OWN(path), out);
}

static int interposed_fxstatat(int version, int folder, const char *path, struct stat *out,
                               int flags)
{
    (void)version;
    return fstatat(folder, OWN(path), out, flags);
}

#ifdef STATX_BASIC_STATS
static int interposed_statx(int folder, const char *path, int flags, unsigned mask,
                            struct statx *out)
{
    return statx(folder, OWN(path), flags, mask, out);
}
#define STATX EXTI_ADDRESS(interposed_statx)
#else
#define STATX NULL
#endif

/* What a compiler that checks sizes makes of some; musl lacks them. */
extern char *__realpath_chk(const char *path, char *out, size_t size) __attribute__((weak));
extern ssize_t __readlink_chk(const char *path, char *out, size_t length, size_t size)
    __attribute__((weak));
extern ssize_t __readlinkat_chk(int folder, const char *path, char *out, size_t length, size_t size)
    __attribute__((weak));

static char *interposed_realpath_chk(const char *path, char *out, size_t size)
{
    return __realpath_chk(OWN(path), out, size);
}

static ssize_t interposed_readlink_chk(const char *path, char *out, size_t length, size_t size)
{
    return __readlink_chk(OWN(path), out, length, size);
}

static ssize_t interposed_readlinkat_chk(int folder, const char *path, char *out, size_t length,
                                         size_t size)
{
    return __readlinkat_chk(folder, OWN(path), out, length, size);
}

static char *interposed_canonicalize(const char *path)
{
    return realpath(OWN(path), NULL);
}

static int interposed_chdir(const char *path)
{
    return exti__directory_chdir(OWN(path));
}

void *exti__path_call(const struct exti_ctx *ctx, const char *symbol)
{
    const struct exti_redirect calls[] = {
        {"open", EXTI_ADDRESS(interposed_open)},
        {"open64", EXTI_ADDRESS(interposed_open)},
        {"__open_2", EXTI_ADDRESS(interposed_open_2)},
        {"__open64_2", EXTI_ADDRESS(interposed_open_2)},
        {"openat", EXTI_ADDRESS(interposed_openat)},
        {"openat64", EXTI_ADDRESS(interposed_openat)},
        {"__openat_2", EXTI_ADDRESS(interposed_openat_2)},
        {"__openat64_2", EXTI_ADDRESS(interposed_openat_2)},
        {"fopen", EXTI_ADDRESS(interposed_fopen)},
        {"fopen64", EXTI_ADDRESS(interposed_fopen)},
        {"opendir", EXTI_ADDRESS(interposed_opendir)},
        {"stat", EXTI_ADDRESS(interposed_stat)},
        {"stat64", EXTI_ADDRESS(interposed_stat)},
        {"lstat", EXTI_ADDRESS(interposed_lstat)},
        {"lstat64", EXTI_ADDRESS(interposed_lstat)},
        {"fstatat", EXTI_ADDRESS(interposed_fstatat)},
        {"fstatat64", EXTI_ADDRESS(interposed_fstatat)},
        {"__xstat", EXTI_ADDRESS(interposed_xstat)},
        {"__xstat64", EXTI_ADDRESS(interposed_xstat)},
        {"__lxstat", EXTI_ADDRESS(interposed_lxstat)},
        {"__lxstat64", EXTI_ADDRESS(interposed_lxstat)},
        {"__fxstatat", EXTI_ADDRESS(interposed_fxstatat)},
        {"__fxstatat64", EXTI_ADDRESS(interposed_fxstatat)},
        {"statx", STATX},
        {"readlink", EXTI_ADDRESS(interposed_readlink)},
        {"readlinkat", EXTI_ADDRESS(interposed_readlinkat)},
        {"__readlink_chk", __readlink_chk ? EXTI_ADDRESS(interposed_readlink_chk) : NULL},
        {"__readlinkat_chk", __readlinkat_chk ? EXTI_ADDRESS(interposed_readlinkat_chk) : NULL},
        {"realpath", EXTI_ADDRESS(interposed_realpath)},
        {"__realpath_chk", __realpath_chk ? EXTI_ADDRESS(interposed_realpath_chk) : NULL},
        {"canonicalize_file_name", EXTI_ADDRESS(interposed_canonicalize)},
        {"chdir", EXTI_ADDRESS(interposed_chdir)},
    };

    /* On 32-bit systems files have sizes of two widths. */
    if (!ctx->surroundings || !ctx->surroundings->directory || sizeof(long) < 8)
        return NULL;
    return exti__redirect_find(calls, sizeof calls / sizeof *calls, symbol);
}
