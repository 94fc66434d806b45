/* A library that takes record locks and closes descriptors in every way, in contexts or opened by
 * itself. */
#ifndef TESTS_ISOLATION_LOCK_TOY_H
#define TESTS_ISOLATION_LOCK_TOY_H

#include <dlfcn.h>

#include "tests/isolation/build.h"

enum lock_way { BY_CLOSE, BY_DUP2, BY_DUP3, BY_FCLOSE, BY_FREOPEN, BY_RANGE, BY_FROM, LOCK_WAYS };

struct locker {
    struct exti_ctx *ctx; /* NULL: the original */
    int (*lock)(int fd, int command, struct flock *l);
    int (*section)(int fd, int command, off_t size);
    int (*close)(int fd, int way); /* -1 and ENOSYS: the C library lacks it */
    int (*dup2)(int from, int to);
    int (*vfork_close)(int fd);
};

static inline void locks_build(void)
{
    static const char source[] =
        "#define _GNU_SOURCE\n"
        "#include <errno.h>\n"
        "#include <fcntl.h>\n"
        "#include <stdio.h>\n"
        "#include <sys/wait.h>\n"
        "#include <unistd.h>\n"
        "int close_range(unsigned, unsigned, int) __attribute__((weak));\n"
        "void closefrom(int) __attribute__((weak));\n"
        "int t_lock(int fd, int c, struct flock *l) { int r = fcntl(fd, c, l); return r; }\n"
        "int t_section(int fd, int c, off_t n) { int r = lockf(fd, c, n); return r; }\n"
        "int t_dup2(int a, int b) { int r = dup2(a, b); return r; }\n"
        "static int over(int fd, int way)\n"
        "{\n"
        "    int null = open(\"/dev/null\", O_RDONLY), r;\n"
        "    r = way == 1 ? dup2(null, fd) : dup3(null, fd, O_CLOEXEC);\n"
        "    close(null);\n"
        "    return r == fd ? close(fd) : -1;\n"
        "}\n"
        "int t_close(int fd, int way)\n"
        "{\n"
        "    static const char *const modes[] = {\"r\", \"w\", \"r+\"};\n"
        "    const char *mode = modes[fcntl(fd, F_GETFL) & O_ACCMODE];\n"
        "    FILE *f = way == 3 || way == 4 ? fdopen(fd, mode) : NULL;\n"
        "    int r = -1;\n"
        "    errno = ENOSYS;\n"
        "    if (way == 0) r = close(fd);\n"
        "    if (way == 1 || way == 2) r = over(fd, way);\n"
        "    if (way == 3) r = fclose(f);\n"
        "    if (way == 4) { f = freopen(\"/dev/null\", \"r\", f); r = f ? fclose(f) : -1; }\n"
        "    if (way == 5 && close_range) r = close_range(fd, fd, 0);\n"
        /* Of the test's descriptors this one is the highest, but for those that the loader
         * keeps. */
        "    if (way == 6 && closefrom) { closefrom(fd); r = 0; }\n"
        "    return r;\n"
        "}\n"
        "int t_vfork_close(int fd)\n"
        "{\n"
        "    int status;\n"
        "    pid_t pid = vfork();\n"
        "    if (!pid) { close(fd); _exit(7); }\n"
        "    return waitpid(pid, &status, 0) == pid ? status : -1;\n"
        "}\n";

    iso_build(source, "locks.so", "-D_FORTIFY_SOURCE=0 -w");
}

static inline struct locker locks_in_context(void)
{
    struct locker t = {.ctx = iso_open(NULL)};
    struct exti_module *m = iso_load(t.ctx, in_tmp("locks.so"));

    *(void **)&t.lock = iso_sym(m, "t_lock");
    *(void **)&t.section = iso_sym(m, "t_section");
    *(void **)&t.close = iso_sym(m, "t_close");
    *(void **)&t.dup2 = iso_sym(m, "t_dup2");
    *(void **)&t.vfork_close = iso_sym(m, "t_vfork_close");
    return t;
}

static inline struct locker locks_by_themselves(void)
{
    void *m = dlopen(in_tmp("locks.so"), RTLD_NOW | RTLD_LOCAL);
    struct locker t = {0};

    want(m);
    *(void **)&t.lock = dlsym(m, "t_lock");
    *(void **)&t.section = dlsym(m, "t_section");
    *(void **)&t.close = dlsym(m, "t_close");
    *(void **)&t.dup2 = dlsym(m, "t_dup2");
    *(void **)&t.vfork_close = dlsym(m, "t_vfork_close");
    return t;
}

/* The errno of a call that returns -1, else 0. */
static inline int errno_of(int rc)
{
    return rc < 0 ? errno : 0;
}

/* F_RDLCK, F_WRLCK or F_UNLCK; returns an errno, or 0. */
static inline int lock_bytes(const struct locker *t, int fd, int command, int type, off_t start,
                             off_t size)
{
    struct flock l = {.l_type = (short)type, .l_start = start, .l_len = size};

    return errno_of(t->lock(fd, command, &l));
}

/* The pid of the lock in the way, 0 if there is none. */
static inline pid_t lock_owner(const struct locker *t, int fd, int type, off_t start, off_t size)
{
    struct flock l = {.l_type = (short)type, .l_start = start, .l_len = size};

    want_int(t->lock(fd, F_GETLK, &l), 0);
    return l.l_type == F_UNLCK ? 0 : l.l_pid;
}

static inline int open_file(const char *name, int flags)
{
    int fd = open(in_tmp(name), flags | O_CREAT | O_CLOEXEC, 0600);

    want(fd >= 0);
    return fd;
}

#endif
