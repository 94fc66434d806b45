#define _GNU_SOURCE /* unshare */
#include "tests/support/exti_test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os/fs_replace.h"

static void assert_file(struct test *t, const char *path, const void *p, size_t n)
{
    size_t got;
    char *bytes = test_read(t, path, &got);

    assert_int_equal(got, n);
    if (n)
        assert_memory_equal(bytes, p, n);
}

static void new_file_has_the_bytes(void **state)
{
    static const size_t sizes[] = {0, 1, 4096, 3000001};
    struct test *t = *state;
    char *path = test_path(t, "f");

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        for (uint32_t flags = 0; flags < 4; flags++) {
            char *bytes = test_alloc(t, sizes[i]);

            memset(bytes, 'a' + (int)i, sizes[i]);
            assert_ok(exti__fs_replace(path, bytes, sizes[i], flags, &t->err), &t->err);
            assert_file(t, path, bytes, sizes[i]);
            assert_string_equal(test_list(t, t->dir), "f\n");
        }
    }
}

static void mode_is_what_the_umask_leaves_and_for_the_owner_alone_to_write(void **state)
{
    static const struct {
        mode_t mask, plain, executable;
    } cases[] = {{022, 0644, 0755},
                 {077, 0600, 0700},
                 {002, 0644, 0755},
                 {0, 0644, 0755},
                 {0222, 0444, 0555}};
    struct test *t = *state;
    char *path = test_path(t, "f");
    struct stat st;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        mode_t old = umask(cases[i].mask);
        int plain = exti__fs_replace(path, "x", 1, 0, &t->err);
        int rc = stat(path, &st);
        mode_t mode = st.st_mode & 07777;
        int executable = exti__fs_replace(path, "x", 1, EXTI_FS_EXECUTABLE, &t->err);

        rc |= stat(path, &st);
        umask(old);
        assert_int_equal(plain | executable | rc, 0);
        assert_int_equal(mode, cases[i].plain);
        assert_int_equal(st.st_mode & 07777, cases[i].executable);
    }
}

static void old_file_stays_readable_where_it_is_open(void **state)
{
    struct test *t = *state;
    char *path = test_path(t, "f"), *other = test_path(t, "other"), buf[8] = "";
    int fd;

    test_write(path, "old", 3);
    assert_int_equal(link(path, other), 0);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_ok(exti__fs_replace(path, "newer", 5, 0, &t->err), &t->err);
    assert_int_equal(read(fd, buf, sizeof buf), 3);
    close(fd);
    assert_string_equal(buf, "old");
    assert_file(t, other, "old", 3);
    assert_file(t, path, "newer", 5);
}

static void link_is_replaced_not_followed(void **state)
{
    struct test *t = *state;
    char *path = test_path(t, "f"), *target = test_path(t, "target");
    struct stat st;

    test_write(target, "old", 3);
    assert_int_equal(symlink("target", path), 0);
    assert_ok(exti__fs_replace(path, "new", 3, 0, &t->err), &t->err);
    assert_file(t, target, "old", 3);
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISREG(st.st_mode));
}

static void file_with_the_longest_name_can_be_written(void **state)
{
    struct test *t = *state;
    char name[257];

    memset(name, 'n', 255);
    name[255] = 0;
    assert_ok(exti__fs_replace(test_path(t, name), "x", 1, 0, &t->err), &t->err);
    assert_file(t, test_path(t, name), "x", 1);
    memset(name, 'n', 256);
    name[256] = 0;
    assert_exti(exti__fs_replace(test_path(t, name), "x", 1, 0, &t->err), EXTI_E_IO, &t->err,
                EXTI_NO_OFFSET);
    assert_int_equal(t->err.os_error, ENAMETOOLONG);
    name[255] = 0;
    assert_string_equal(test_list(t, t->dir), test_format(t, "%s\n", name));
}

static void failure_leaves_the_folder_as_it_was(void **state)
{
    struct test *t = *state;
    const struct {
        const char *path;
        int os_error;
    } cases[] = {
        {test_path(t, "missing/f"), ENOENT}, {test_path(t, "file/f"), ENOTDIR},
        {test_path(t, "dir"), EISDIR},       {test_path(t, "loop/f"), ELOOP},
        {test_path(t, "dir/"), 0},           {test_path(t, "new/"), 0},
    };
    char *before;

    test_write(test_path(t, "file"), "x", 1);
    assert_int_equal(mkdir(test_path(t, "dir"), 0700), 0);
    test_write(test_path(t, "dir/inside"), "x", 1);
    assert_int_equal(symlink("loop", test_path(t, "loop")), 0);
    before = test_list(t, t->dir);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_exti(exti__fs_replace(cases[i].path, "x", 1, EXTI_FS_SYNC, &t->err), EXTI_E_IO,
                    &t->err, EXTI_NO_OFFSET);
        assert_string_equal(t->err.file, cases[i].path);
        if (cases[i].os_error)
            assert_int_equal(t->err.os_error, cases[i].os_error);
        assert_string_equal(test_list(t, t->dir), before);
        assert_string_equal(test_list(t, test_path(t, "dir")), "inside\n");
    }
}

/* ---- file systems with no room, or that may not be written ----------------------------------- */

/* What a child process found out, since cmocka's assertions work in one process only. */
struct finding {
    int set_up, rc;
    struct exti_error err;
};

static struct finding *share_finding(struct test *t)
{
    struct finding *f =
        mmap(NULL, sizeof *f, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    (void)t;
    assert_ptr_not_equal(f, MAP_FAILED);
    return f;
}

static void wait_for(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void replace_5_mb(const char *path, struct finding *f)
{
    char *bytes = calloc(1, 5 << 20);

    f->rc = exti__fs_replace(path, bytes, 5 << 20, 0, &f->err);
    free(bytes);
}

/* Works without root: the limit cuts one write short, and the next write fails. */
static void file_size_limit_leaves_the_old_file(void **state)
{
    struct test *t = *state;
    char *path = test_path(t, "f");
    struct finding *f = share_finding(t);
    pid_t pid;

    test_write(path, "old", 3);
    pid = fork();
    if (!pid) {
        const struct rlimit limit = {1 << 20, 1 << 20};

        signal(SIGXFSZ, SIG_IGN);
        f->set_up = setrlimit(RLIMIT_FSIZE, &limit);
        replace_5_mb(path, f);
        _exit(0);
    }
    wait_for(pid);
    assert_int_equal(f->set_up, 0);
    assert_exti(f->rc, EXTI_E_IO, &f->err, EXTI_NO_OFFSET);
    assert_int_equal(f->err.os_error, EFBIG);
    assert_string_equal(f->err.file, path);
    assert_file(t, path, "old", 3);
    assert_string_equal(test_list(t, t->dir), "f\n");
    munmap(f, sizeof *f);
}

static void full_disk_leaves_the_old_file(void **state)
{
    struct test *t = *state;
    char *dir = test_path(t, "small"), *path = test_path(t, "small/f");
    struct finding *f = share_finding(t);
    struct stat st;
    pid_t pid;

    assert_int_equal(mkdir(dir, 0700), 0);
    pid = fork();
    if (!pid) {
        struct exti_error *err = &f->err;

        f->set_up = unshare(CLONE_NEWNS) || mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) ||
                    mount("tmpfs", dir, "tmpfs", 0, "size=1m") ||
                    exti__fs_replace(path, "old", 3, 0, err);
        if (!f->set_up) {
            replace_5_mb(path, f);
            /* A small file fits again, so nothing was left behind. */
            if (stat(path, &st) != 0 || st.st_size != 3 ||
                exti__fs_replace(path, "newer", 5, EXTI_FS_SYNC, NULL) != 0)
                _exit(1);
        }
        _exit(0);
    }
    wait_for(pid);
    if (f->set_up)
        skip_because("a small tmpfs needs the right to mount");
    assert_exti(f->rc, EXTI_E_IO, &f->err, EXTI_NO_OFFSET);
    assert_int_equal(f->err.os_error, ENOSPC);
    assert_string_equal(f->err.message, "cannot write 5242880 bytes: No space left on device");
    assert_string_equal(f->err.file, path);
    munmap(f, sizeof *f);
}

static void read_only_file_system_is_named(void **state)
{
    struct test *t = *state;
    char *dir = test_path(t, "ro"), *path = test_path(t, "ro/f");
    struct finding *f = share_finding(t);
    pid_t pid;

    assert_int_equal(mkdir(dir, 0700), 0);
    pid = fork();
    if (!pid) {
        f->set_up = unshare(CLONE_NEWNS) || mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) ||
                    mount("tmpfs", dir, "tmpfs", MS_RDONLY, "size=1m");
        if (!f->set_up)
            f->rc = exti__fs_replace(path, "x", 1, 0, &f->err);
        _exit(0);
    }
    wait_for(pid);
    if (f->set_up)
        skip_because("a read-only tmpfs needs the right to mount");
    assert_exti(f->rc, EXTI_E_IO, &f->err, EXTI_NO_OFFSET);
    assert_int_equal(f->err.os_error, EROFS);
    assert_string_equal(f->err.file, path);
    munmap(f, sizeof *f);
}

static void folder_of_someone_else_is_named(void **state)
{
    struct test *t = *state;
    char *dir = test_path(t, "theirs"), *path = test_path(t, "theirs/f");
    struct finding *f = share_finding(t);
    pid_t pid;

    assert_int_equal(mkdir(dir, 0700), 0);
    assert_int_equal(chmod(dir, 0555), 0);
    assert_int_equal(chmod(t->dir, 0755), 0);
    pid = fork();
    if (!pid) {
        f->set_up = !geteuid() && (setgid(65534) != 0 || setuid(65534) != 0);
        f->rc = exti__fs_replace(path, "x", 1, 0, &f->err);
        _exit(0);
    }
    wait_for(pid);
    assert_int_equal(f->set_up, 0);
    assert_exti(f->rc, EXTI_E_IO, &f->err, EXTI_NO_OFFSET);
    assert_int_equal(f->err.os_error, EACCES);
    assert_string_equal(f->err.file, path);
    munmap(f, sizeof *f);
}

/* The folder of "/f" is "/", and that of "f" is "."; both must be found to be synced. */
static void folder_is_found_in_every_kind_of_path(void **state)
{
    struct test *t = *state;
    struct finding *f = share_finding(t);
    pid_t pid;

    assert_int_equal(mkdir(test_path(t, "sub"), 0700), 0);
    pid = fork();
    if (!pid) {
        f->set_up = chdir(t->dir);
        f->rc = exti__fs_replace("f", "x", 1, EXTI_FS_SYNC, &f->err) ||
                exti__fs_replace("sub/f", "x", 1, EXTI_FS_SYNC, &f->err) ||
                exti__fs_replace("sub//f", "x", 1, EXTI_FS_SYNC, &f->err);
        if (!f->rc && chroot(t->dir) == 0)
            f->rc = exti__fs_replace("/g", "x", 1, EXTI_FS_SYNC, &f->err);
        else
            test_write("g", "x", 1);
        _exit(0);
    }
    wait_for(pid);
    assert_int_equal(f->set_up, 0);
    assert_int_equal(f->rc, 0);
    assert_string_equal(test_list(t, t->dir), "f\ng\nsub\n");
    assert_string_equal(test_list(t, test_path(t, "sub")), "f\n");
    munmap(f, sizeof *f);
}

/* ---- many at once, and sudden ends ----------------------------------------------------------- */

enum { BIG = 1 << 20 };

static bool whole(const char *path, char *first)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    char *p;
    bool good;

    if (fd < 0 || fstat(fd, &st) != 0 || st.st_size != BIG) {
        close(fd);
        return false;
    }
    p = malloc(BIG);
    good = p && read(fd, p, BIG) == BIG && memcmp(p, p + 1, BIG - 1) == 0;
    if (good)
        *first = p[0];
    free(p);
    close(fd);
    return good;
}

struct writer {
    const char *path;
    char fill;
    bool failed;
};

static void *keep_replacing(void *arg)
{
    struct writer *w = arg;
    char *bytes = malloc(BIG), first;

    memset(bytes, w->fill, BIG);
    for (int i = 0; i < 40; i++) {
        if (exti__fs_replace(w->path, bytes, BIG, 0, NULL) != 0 || !whole(w->path, &first))
            w->failed = true;
    }
    free(bytes);
    return NULL;
}

static void readers_never_see_half_a_file(void **state)
{
    struct test *t = *state;
    char *path = test_path(t, "f");
    struct writer w[4];
    pthread_t threads[ARRAY_SIZE(w)];

    for (size_t i = 0; i < ARRAY_SIZE(w); i++) {
        w[i] = (struct writer){.path = path, .fill = (char)('a' + i)};
        assert_int_equal(pthread_create(&threads[i], NULL, keep_replacing, &w[i]), 0);
    }
    for (size_t i = 0; i < ARRAY_SIZE(w); i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < ARRAY_SIZE(w); i++)
        assert_false(w[i].failed);
    assert_string_equal(test_list(t, t->dir), "f\n");
}

/* A file that a killed process leaves is recognised by its name, so that it can be removed. */
static unsigned count_leftovers(struct test *t)
{
    char *names = test_list(t, t->dir), *name;
    unsigned n = 0;

    for (name = strtok(names, "\n"); name; name = strtok(NULL, "\n")) {
        if (!strcmp(name, "f"))
            continue;
        n++;
        assert_memory_equal(name, ".exti-", 6);
        assert_int_equal(strspn(name + 6, "0123456789abcdef"), 32);
        assert_int_equal(strlen(name), 38);
    }
    return n;
}

/* The limit cuts a write short, and the next write gets a signal that kills the process. */
static void dying_in_the_middle_of_a_write_leaves_the_old_file(void **state)
{
    static const rlim_t sizes[] = {0, 1, 4096, BIG / 2, BIG - 1};
    static char bytes[BIG];
    struct test *t = *state;
    char *path = test_path(t, "f");

    test_write(path, "old", 3);
    for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
        pid_t pid = fork();
        int status;

        if (!pid) {
            const struct rlimit limit = {sizes[i], sizes[i]}, no_core = {0, 0};

            signal(SIGXFSZ, SIG_DFL);
            if (setrlimit(RLIMIT_CORE, &no_core) || setrlimit(RLIMIT_FSIZE, &limit))
                _exit(1);
            exti__fs_replace(path, bytes, BIG, 0, NULL);
            _exit(2);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGXFSZ);
        assert_file(t, path, "old", 3);
        assert_int_equal(count_leftovers(t), i + 1);
    }
    assert_ok(exti__fs_replace(path, "at last", 7, 0, &t->err), &t->err);
    assert_file(t, path, "at last", 7);
}

/* Starts a process that replaces the file again and again; returns it after the first time, or
 * -1. */
static pid_t start_replacing(const char *path)
{
    static char bytes[BIG];
    int ready[2];
    char byte;
    pid_t pid;

    assert_int_equal(pipe(ready), 0);
    pid = fork();
    if (pid) {
        ssize_t got;

        close(ready[1]);
        got = read(ready[0], &byte, 1);
        close(ready[0]);
        if (got == 1)
            return pid;
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        return -1;
    }
    alarm(600);
    for (int i = 0;; i++) {
        memset(bytes, 'a' + i % 26, BIG);
        exti__fs_replace(path, bytes, BIG, 0, NULL);
        if (!i && write(ready[1], "r", 1) != 1)
            _exit(1);
    }
}

/* The sleeps spread the moments at which the writers are killed. */
static void killing_the_writer_leaves_the_old_or_the_new_file(void **state)
{
    struct test *t = *state;
    char *path = test_path(t, "f"), *bytes = test_alloc(t, BIG);
    char first;

    memset(bytes, 'z', BIG);
    test_write(path, bytes, BIG);
    for (unsigned i = 0; i < 100; i++) {
        pid_t pid = start_replacing(path);
        int status;

        assert_true(pid > 0);
        usleep(i * 97 % 3500);
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(whole(path, &first));
    }
    count_leftovers(t);
    assert_ok(exti__fs_replace(path, "at last", 7, 0, &t->err), &t->err);
    assert_file(t, path, "at last", 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(new_file_has_the_bytes),
        exti_test(mode_is_what_the_umask_leaves_and_for_the_owner_alone_to_write),
        exti_test(old_file_stays_readable_where_it_is_open),
        exti_test(link_is_replaced_not_followed),
        exti_test(file_with_the_longest_name_can_be_written),
        exti_test(failure_leaves_the_folder_as_it_was),
        exti_test(file_size_limit_leaves_the_old_file),
        exti_test(full_disk_leaves_the_old_file),
        exti_test(read_only_file_system_is_named),
        exti_test(folder_of_someone_else_is_named),
        exti_test(folder_is_found_in_every_kind_of_path),
        exti_test(readers_never_see_half_a_file),
        exti_test(dying_in_the_middle_of_a_write_leaves_the_old_file),
        exti_test(killing_the_writer_leaves_the_old_or_the_new_file),
    };

    return cmocka_run_group_tests_name("base/fs_replace", tests, NULL, NULL);
}
