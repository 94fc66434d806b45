/* Lets chosen system calls of a test program fail, or something happen before them.  Included by one source of it, before any other
 * header: the functions here take the place of the C library's, also for the code under test. */
#ifndef TESTS_SUPPORT_FAIL_CALLS_H
#define TESTS_SUPPORT_FAIL_CALLS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_NEXT */
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

/* Calls on paths with this text fail with this error; NULL: none does. */
static struct {
    const char *in;
    int error;
    bool in_stat;                                   /* stat fails, and not open */
    void (*before)(const char *path, bool is_stat); /* called first; NULL: nothing is */
    unsigned failed;
} fail_calls;

static inline bool fails_now(const char *path, bool is_stat)
{
    if (fail_calls.before)
        fail_calls.before(path, is_stat);
    if (!fail_calls.in || fail_calls.in_stat != is_stat || !strstr(path, fail_calls.in))
        return false;
    fail_calls.failed++;
    errno = fail_calls.error;
    return true;
}

int open(const char *path, int flags, ...)
{
    int (*next)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    mode_t mode = 0;

    if (flags & O_CREAT) {
        va_list args;

        va_start(args, flags);
        mode = va_arg(args, mode_t);
        va_end(args);
    }
    return fails_now(path, false) ? -1 : next(path, flags, mode);
}

/* What open is called with _FORTIFY_SOURCE, by which the product is built. */
int __open_2(const char *path, int flags);
int __open_2(const char *path, int flags)
{
    return open(path, flags);
}

int stat(const char *restrict path, struct stat *restrict out)
{
    int (*next)(const char *, struct stat *) =
        (int (*)(const char *, struct stat *))dlsym(RTLD_NEXT, "stat");

    return fails_now(path, true) ? -1 : next(path, out);
}

#endif
