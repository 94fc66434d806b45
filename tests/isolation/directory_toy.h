/* A library that changes the directory and the umask, in contexts, and starts threads and
 * programs. */
#ifndef TESTS_ISOLATION_DIRECTORY_TOY_H
#define TESTS_ISOLATION_DIRECTORY_TOY_H

#include <dirent.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "tests/isolation/build.h"

struct mover {
    struct exti_ctx *ctx;
    int (*go)(const char *path), (*go_to)(int fd), (*mask)(int mask);
    char *(*where)(void); /* as getcwd(3) of a thread; its last component, in a static buffer */
    int (*mode)(const char *name); /* makes it, and tells its mode */
    int (*start)(pthread_t *t, void *(*run)(void *arg), void *arg); /* pthread_create */
    int (*start_by)(pthread_t *t, const pthread_attr_t *attr, void *(*run)(void *arg), void *arg);
    int (*ask)(int way, const char *name); /* whether a child of this kind finds a file here */
    int (*vfork_go)(const char *path);     /* chdir in a vfork child */
    /* Bits of the ways in which `name` is found through `folder`, which is a link to where the
     * thread is. */
    int (*through)(const char *folder, const char *name);
};

enum { BY_FORK, BY_SPAWN, BY_SYSTEM, BY_POPEN, WAYS };

static inline void mover_build(void)
{
    static const char source[] =
        "#define _GNU_SOURCE\n"
        "#include <dirent.h>\n"
        "#include <fcntl.h>\n"
        "#include <pthread.h>\n"
        "#include <spawn.h>\n"
        "#include <stdio.h>\n"
        "#include <stdlib.h>\n"
        "#include <string.h>\n"
        "#include <sys/stat.h>\n"
        "#include <sys/wait.h>\n"
        "#include <unistd.h>\n"
        "extern char **environ;\n"
        "int m_go(const char *path) { int r = chdir(path); return r; }\n"
        "int m_go_to(int fd) { int r = fchdir(fd); return r; }\n"
        "int m_mask(int mask) { int r = umask(mask); return r; }\n"
        "char *m_where(void)\n"
        "{\n"
        "    static __thread char at[4096];\n"
        "    char *slash = getcwd(at, sizeof at) ? strrchr(at, '/') : 0;\n"
        "    return slash ? slash + 1 : \"nowhere\";\n"
        "}\n"
        "int m_mode(const char *name)\n"
        "{\n"
        "    struct stat st;\n"
        "    int fd = open(name, O_CREAT | O_EXCL | O_WRONLY, 0666);\n"
        "    if (fd < 0 || fstat(fd, &st) || close(fd) || unlink(name)) return -1;\n"
        "    return st.st_mode & 0777;\n"
        "}\n"
        "int m_start(pthread_t *t, void *(*run)(void *), void *arg)\n"
        "{ int r = pthread_create(t, 0, run, arg); return r; }\n"
        "int m_start_by(pthread_t *t, pthread_attr_t *attr, void *(*run)(void *), void *arg)\n"
        "{ int r = pthread_create(t, attr, run, arg); return r; }\n"
        "static int status(int pid)\n"
        "{ int s; return pid > 0 && waitpid(pid, &s, 0) == pid ? s : -1; }\n"
        "int m_ask(int way, const char *name)\n"
        "{\n"
        "    char line[4096], *argv[] = {\"test\", \"-e\", (char *)name, 0};\n"
        "    pid_t pid = -1;\n"
        "    FILE *f;\n"
        "    snprintf(line, sizeof line, \"test -e %s\", name);\n"
        "    if (way == 2) return system(line);\n"
        "    if (way == 3) { f = popen(line, \"r\"); return f ? pclose(f) : -1; }\n"
        "    if (way == 1) return posix_spawnp(&pid, \"test\", 0, 0, argv, environ) ? -1 : "
        "status(pid);\n"
        "    pid = fork();\n"
        "    if (!pid) _exit(access(name, F_OK) ? 1 : 0);\n"
        "    return status(pid);\n"
        "}\n"
        "static int is_here(const struct stat *st)\n"
        "{ struct stat own; return !stat(\".\", &own) && own.st_dev == st->st_dev && own.st_ino == "
        "st->st_ino; }\n"
        "char *__realpath_chk(const char *, char *, size_t);\n"
        "ssize_t __readlink_chk(const char *, char *, size_t, size_t);\n"
        "ssize_t __readlinkat_chk(int, const char *, char *, size_t, size_t);\n"
        "#ifdef __x86_64__\n"
        "int __xstat(int, const char *, struct stat *), __lxstat(int, const char *, struct stat "
        "*);\n"
        "int __fxstatat(int, int, const char *, struct stat *, int);\n"
        "#endif\n"
        "int m_through(const char *folder, const char *name)\n"
        "{\n"
        "    char path[4096], link[4096], at[4096];\n"
        "    int fd, found = 0, n, proc = open(\"/\", O_RDONLY);\n"
        "    struct stat st;\n"
        "    struct statx sx;\n"
        "    char *whole;\n"
        "    FILE *f;\n"
        "    DIR *d;\n"
        "    snprintf(path, sizeof path, \"%s/%s\", folder, name);\n"
        "    if ((fd = open(path, O_RDONLY)) >= 0) found |= 1, close(fd);\n"
        "    if ((fd = openat(proc, path, O_RDONLY)) >= 0) found |= 2, close(fd);\n"
        "    if ((f = fopen(path, \"r\"))) found |= 4, fclose(f);\n"
        "    if ((d = opendir(folder)))\n"
        "        found |= !fstat(dirfd(d), &st) && is_here(&st) ? 8 : 0, closedir(d);\n"
        "    if (!stat(folder, &st) && is_here(&st)) found |= 16;\n"
        "    if (!lstat(path, &st)) found |= 32;\n"
        "    if (!fstatat(proc, path, &st, 0)) found |= 64;\n"
        "    if (getcwd(at, sizeof at)) {\n"
        "        n = readlink(folder, link, sizeof link);\n"
        "        if (n == strlen(at) && !memcmp(link, at, n)) found |= 128;\n"
        "        n = readlinkat(proc, folder, link, sizeof link);\n"
        "        if (n == strlen(at) && !memcmp(link, at, n)) found |= 256;\n"
        "        if (realpath(folder, link) && !strcmp(link, at)) found |= 512;\n"
        "        if (__realpath_chk(folder, link, sizeof link) && !strcmp(link, at)) found |= "
        "1024;\n"
        "        n = __readlink_chk(folder, link, sizeof link, sizeof link);\n"
        "        if (n == strlen(at) && !memcmp(link, at, n)) found |= 2048;\n"
        "        n = __readlinkat_chk(proc, folder, link, sizeof link, sizeof link);\n"
        "        if (n == strlen(at) && !memcmp(link, at, n)) found |= 4096;\n"
        "        if ((whole = canonicalize_file_name(folder)))\n"
        "            found |= strcmp(whole, at) ? 0 : 8192, free(whole);\n"
        "    }\n"
        "    if (!stat(\".\", &st) && !statx(proc, folder, 0, STATX_INO, &sx) && sx.stx_ino == "
        "st.st_ino)\n"
        "        found |= 16384;\n"
        "#ifdef __x86_64__\n"
        "    if (!__xstat(1, folder, &st) && is_here(&st)) found |= 32768;\n"
        "    if (!__lxstat(1, path, &st)) found |= 65536;\n"
        "    if (!__fxstatat(1, proc, path, &st, 0)) found |= 131072;\n"
        "#else\n"
        "    found |= (found & 16 ? 32768 : 0) | (found & 32 ? 65536 : 0) | (found & 64 ? 131072 : "
        "0);\n"
        "#endif\n"
        "    close(proc);\n"
        "    return found;\n"
        "}\n"
        "int m_vfork_go(const char *path)\n"
        "{\n"
        "    pid_t pid = vfork();\n"
        "    if (!pid) _exit(chdir(path) ? 1 : 0);\n"
        "    return status(pid);\n"
        "}\n";

    iso_build(source, "mover.so", "-w");
}

static inline struct mover mover(uint32_t flags)
{
    struct exti_ctx_opts opts = iso_opts(NULL, NULL);
    struct mover m = {0};
    struct exti_module *lib;

    opts.flags = flags;
    m.ctx = iso_open_opts(&opts);
    lib = iso_load(m.ctx, in_tmp("mover.so"));
    *(void **)&m.go = iso_sym(lib, "m_go");
    *(void **)&m.go_to = iso_sym(lib, "m_go_to");
    *(void **)&m.mask = iso_sym(lib, "m_mask");
    *(void **)&m.where = iso_sym(lib, "m_where");
    *(void **)&m.mode = iso_sym(lib, "m_mode");
    *(void **)&m.start = iso_sym(lib, "m_start");
    *(void **)&m.start_by = iso_sym(lib, "m_start_by");
    *(void **)&m.ask = iso_sym(lib, "m_ask");
    *(void **)&m.vfork_go = iso_sym(lib, "m_vfork_go");
    *(void **)&m.through = iso_sym(lib, "m_through");
    return m;
}

/* The case's folder has these, each with a file of its name in it; the program is in "home". */
static const char *const mover_folders[] = {"home", "a", "b", "c"};

static inline void begin(void)
{
    mover_build();
    iso_toys();
    for (size_t i = 0; i < ARRAY_SIZE(mover_folders); i++) {
        want_int(mkdir(in_tmp(mover_folders[i]), 0755), 0);
        iso_write_text(in_tmp(iso_text("%s/in-%s", mover_folders[i], mover_folders[i])), "");
    }
    want_int(chdir(in_tmp("home")), 0);
    umask(022);
}

static inline char *here(void)
{
    static _Thread_local char at[4096];
    char *slash = getcwd(at, sizeof at) ? strrchr(at, '/') : NULL;

    return slash ? slash + 1 : "nowhere";
}

static inline bool is_at(const char *folder)
{
    const bool ok = strcmp(here(), folder) == 0 && file_exists(iso_text("in-%s", folder));

    if (!ok)
        fprintf(stderr, "at %s, not %s\n", here(), folder);
    return ok;
}

/* The umask of the calling thread, by a file that it makes. */
static inline int mask_here(void)
{
    const char *name = in_tmp(iso_text("mask-%ld", syscall(SYS_gettid)));
    struct stat st;
    int fd;

    fd = open(name, O_CREAT | O_EXCL | O_WRONLY, 0777);
    want(fd >= 0 && fstat(fd, &st) == 0 && close(fd) == 0 && unlink(name) == 0);
    return ~st.st_mode & 0777;
}

/* How many entries a folder has. */
static inline int count_in(const char *folder)
{
    DIR *d = opendir(folder);
    int n = 0;

    want(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* A thread that was joined may still be there for a moment. */
static inline void want_count_in(const char *folder, int n)
{
    for (int ms = 0; ms < 10000 && count_in(folder) != n; ms++)
        usleep(1000);
    want_int(count_in(folder), n);
}

static inline int count_settled_in(const char *folder)
{
    int n, now = count_in(folder);

    do {
        n = now;
        usleep(20000);
        now = count_in(folder);
    } while (now != n);
    return n;
}

/* ---- threads that do what they are told ---- */

struct thread {
    pthread_t id;
    pthread_barrier_t step;
    void (*todo)(void *arg);
    void *arg;
};

static inline void *obey(void *arg)
{
    struct thread *t = arg;

    for (;;) {
        pthread_barrier_wait(&t->step);
        if (!t->todo)
            return NULL;
        t->todo(t->arg);
        pthread_barrier_wait(&t->step);
    }
}

/* By the program, or by a context's copy. */
static inline void start(struct thread *t, const struct mover *by)
{
    pthread_barrier_init(&t->step, NULL, 2);
    want_int(by ? by->start(&t->id, obey, t) : pthread_create(&t->id, NULL, obey, t), 0);
}

static inline void tell(struct thread *t, void (*todo)(void *arg), void *arg)
{
    t->todo = todo;
    t->arg = arg;
    pthread_barrier_wait(&t->step);
    pthread_barrier_wait(&t->step);
}

static inline void end(struct thread *t)
{
    t->todo = NULL;
    pthread_barrier_wait(&t->step);
    want_int(pthread_join(t->id, NULL), 0);
}

struct errand {
    struct mover *m;
    const char *folder;
    int mask;
    struct thread *child;
};

static inline void own(void *arg)
{
    struct errand *e = arg;
    struct exti_error err = {0};

    want_exti(exti_ctx_own_thread(e->m->ctx, 0, &err), 0, &err);
}

static inline void move(void *arg)
{
    struct errand *e = arg;

    want_int(e->m->go(in_tmp(e->folder)), 0);
    e->m->mask(e->mask);
}

static inline void look(void *arg)
{
    struct errand *e = arg;

    want(is_at(e->folder));
    want_text(e->m->where(), e->folder);
    want_int(mask_here(), e->mask);
    want_int(e->m->mode(iso_text("new-%ld", syscall(SYS_gettid))), 0666 & ~e->mask);
}

static inline void start_child(void *arg)
{
    struct errand *e = arg;

    start(e->child, e->m);
}

static inline void ask_children(void *arg)
{
    struct errand *e = arg;

    for (int way = 0; way < WAYS; way++) {
        want_int(e->m->ask(way, iso_text("in-%s", e->folder)), 0);
        want(e->m->ask(way, "in-nowhere") != 0);
    }
}

#endif
