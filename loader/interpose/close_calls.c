/* POSIX close: a process that closes any descriptor of a file drops all its record locks on that
 * file.  Here a context does.  While none has locks each of these costs one load more. */
#define _GNU_SOURCE /* dup3, close_range, closefrom */
#include "loader/interpose/close_calls.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/track/address_map.h"
#include "loader/track/record_locks.h"
#include "loader/track/redirects.h"

#define CALL __builtin_return_address(0)

/* To be called before the descriptor is closed. */
static void begin_close(struct exti_closing_file *c, int fd, const void *call)
{
    struct exti_module m;

    *c = (struct exti_closing_file){0};
    if (fd >= 0 && exti__address_map_find((uintptr_t)call, &m))
        exti__record_locks_closing(m.ctx, fd, c);
}

static int interposed_close(int fd)
{
    struct exti_closing_file c;
    int rc;

    if (!exti__record_locks_any())
        return close(fd);
    begin_close(&c, fd, CALL);
    /* Programs close whatever numbers there are. */
    if (c.kept) {
        errno = EBADF;
        return -1;
    }
    rc = close(fd);
    exti__record_locks_closed(&c);
    return rc;
}

/* ---- dup2 ---- */

/* False, and errno is set, if the number is one that the library keeps and cannot change. */
static bool begin_replace(struct exti_closing_file *c, int from, int to, const void *call)
{
    begin_close(c, from == to ? -1 : to, call);
    if (!c->kept || exti__record_locks_vacate(to))
        return true;
    errno = EBUSY;
    return false;
}

static int interposed_dup2(int from, int to)
{
    struct exti_closing_file c;
    int rc;

    if (!exti__record_locks_any())
        return dup2(from, to);
    if (!begin_replace(&c, from, to, CALL))
        return -1;
    rc = dup2(from, to);
    if (rc >= 0)
        exti__record_locks_closed(&c);
    return rc;
}

static int interposed_dup3(int from, int to, int flags)
{
    struct exti_closing_file c;
    int rc;

    if (!exti__record_locks_any())
        return dup3(from, to, flags);
    if (!begin_replace(&c, from, to, CALL))
        return -1;
    rc = dup3(from, to, flags);
    if (rc >= 0)
        exti__record_locks_closed(&c);
    return rc;
}

/* ---- streams ---- */

static int interposed_fclose(FILE *stream)
{
    struct exti_closing_file c;
    int rc;

    if (!exti__record_locks_any())
        return fclose(stream);
    begin_close(&c, fileno(stream), CALL);
    rc = fclose(stream);
    exti__record_locks_closed(&c);
    return rc;
}

static FILE *interposed_freopen(const char *path, const char *mode, FILE *stream)
{
    struct exti_closing_file c;
    FILE *f;

    if (!exti__record_locks_any())
        return freopen(path, mode, stream);
    begin_close(&c, fileno(stream), CALL);
    f = freopen(path, mode, stream);
    exti__record_locks_closed(&c);
    return f;
}

/* ---- ranges of descriptors ---- */

/* glibc 2.34; musl lacks both. */
extern int close_range(unsigned first, unsigned last, int flags) __attribute__((weak));
extern void closefrom(int first) __attribute__((weak));

/* Drops the context's locks on the files of all descriptors from `first` to `last`, which are about
 * to be closed.  Without the list of descriptors the locks stay until a descriptor is closed
 * singly. */
static void drop_range(const void *call, unsigned first, unsigned last)
{
    DIR *dir = opendir("/proc/self/fd");
    const struct dirent *e;

    while (dir && (e = readdir(dir))) {
        const unsigned long fd = strtoul(e->d_name, NULL, 10);
        struct exti_closing_file c;

        if (*e->d_name == '.' || fd < first || fd > last)
            continue;
        begin_close(&c, (int)fd, call);
        exti__record_locks_closed(&c);
    }
    if (dir)
        closedir(dir);
}

/* Closes the descriptors between those that the library keeps. */
static int close_others(unsigned first, unsigned last, int flags)
{
    int rc = 0, kept;

    while (!rc && first <= last && first <= INT_MAX &&
           (kept = exti__record_locks_next_kept((int)first)) >= 0 && (unsigned)kept <= last) {
        if ((unsigned)kept > first)
            rc = close_range(first, (unsigned)kept - 1, flags);
        first = (unsigned)kept + 1;
    }
    return rc || first > last ? rc : close_range(first, last, flags);
}

/* Linux close_range: CLOSE_RANGE_UNSHARE and CLOSE_RANGE_CLOEXEC. */
#define UNSHARE 2
#define CLOEXEC 4

static int interposed_close_range(unsigned first, unsigned last, int flags)
{
    struct exti_module m;

    /* A thread that leaves the process's descriptors leaves its locks as well. */
    if (!exti__record_locks_any() || (flags & (UNSHARE | CLOEXEC)) || first > last ||
        !exti__address_map_find((uintptr_t)CALL, &m))
        return close_range(first, last, flags);
    drop_range(CALL, first, last);
    return close_others(first, last, flags);
}

static void interposed_closefrom(int first)
{
    struct exti_module m;

    if (!exti__record_locks_any() || !exti__address_map_find((uintptr_t)CALL, &m)) {
        closefrom(first);
        return;
    }
    drop_range(CALL, first < 0 ? 0 : (unsigned)first, UINT_MAX);
    close_others(first < 0 ? 0 : (unsigned)first, UINT_MAX, 0);
}

/* ---- looking them up ---- */

void *exti__close_call(const char *symbol)
{
    const struct exti_redirect calls[] = {
        {"close", EXTI_ADDRESS(interposed_close)},
        {"__close", EXTI_ADDRESS(interposed_close)},
        {"dup2", EXTI_ADDRESS(interposed_dup2)},
        {"__dup2", EXTI_ADDRESS(interposed_dup2)},
        {"dup3", EXTI_ADDRESS(interposed_dup3)},
        {"fclose", EXTI_ADDRESS(interposed_fclose)},
        {"_IO_fclose", EXTI_ADDRESS(interposed_fclose)},
        {"freopen", EXTI_ADDRESS(interposed_freopen)},
        {"freopen64", EXTI_ADDRESS(interposed_freopen)},
        {"close_range", close_range ? EXTI_ADDRESS(interposed_close_range) : NULL},
        {"closefrom", closefrom && close_range ? EXTI_ADDRESS(interposed_closefrom) : NULL},
    };

    return exti__redirect_find(calls, sizeof calls / sizeof *calls, symbol);
}
