/* Preloaded.  Counts the calls that change a folder or a file.  With KILL_AT set, kills the process
 * at the call of that number, and a write halfway through.  With COUNT_TO set, writes the count to
 * that file when the process ends. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_int steps;

static int is_last(void)
{
    const char *at = getenv("KILL_AT");

    return atomic_fetch_add(&steps, 1) + 1 == (at ? atoi(at) : 0);
}

static void step(void)
{
    if (is_last())
        kill(getpid(), SIGKILL);
}

int rename(const char *from, const char *to)
{
    int (*next)(const char *, const char *) =
        (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename");

    step();
    return next(from, to);
}

int unlink(const char *path)
{
    int (*next)(const char *) = (int (*)(const char *))dlsym(RTLD_NEXT, "unlink");

    step();
    return next(path);
}

int mkdir(const char *path, mode_t mode)
{
    int (*next)(const char *, mode_t) = (int (*)(const char *, mode_t))dlsym(RTLD_NEXT, "mkdir");

    step();
    return next(path, mode);
}

ssize_t write(int fd, const void *p, size_t n)
{
    ssize_t (*next)(int, const void *, size_t) =
        (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");

    if (fd > 2 && is_last()) {
        next(fd, p, n / 2);
        kill(getpid(), SIGKILL);
    }
    return next(fd, p, n);
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
    ssize_t (*next)(int, const void *, size_t, off_t) =
        (ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");

    if (is_last()) {
        next(fd, p, n / 2, at);
        kill(getpid(), SIGKILL);
    }
    return next(fd, p, n, at);
}

ssize_t copy_file_range(int from, off64_t *at, int to, off64_t *where, size_t n, unsigned flags)
{
    ssize_t (*next)(int, off64_t *, int, off64_t *, size_t, unsigned) =
        (ssize_t(*)(int, off64_t *, int, off64_t *, size_t, unsigned))dlsym(RTLD_NEXT,
                                                                            "copy_file_range");

    if (is_last()) {
        next(from, at, to, where, n / 2, flags);
        kill(getpid(), SIGKILL);
    }
    return next(from, at, to, where, n, flags);
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
        step();
    }
    return next(path, flags, mode);
}

__attribute__((destructor)) static void tell(void)
{
    const char *to = getenv("COUNT_TO");
    FILE *f = to ? fopen(to, "w") : NULL;

    if (!f)
        return;
    fprintf(f, "%d\n", atomic_load(&steps));
    fclose(f);
}
