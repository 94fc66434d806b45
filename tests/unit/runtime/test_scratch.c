/* The private folder that goes with the process. */
#include "tests/support/interrupt_calls.h"

#include "tests/support/exti_test.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/scratch.h"

/* These take the place of the C library's, also for the code under test. */
static bool no_fork, no_realpath;

pid_t fork(void)
{
    pid_t (*next)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "fork");

    errno = EAGAIN;
    return no_fork ? -1 : next();
}

char *realpath(const char *restrict path, char *restrict out)
{
    char *(*next)(const char *, char *) =
        (char *(*)(const char *, char *))dlsym(RTLD_NEXT, "realpath");

    errno = EACCES;
    return no_realpath ? NULL : next(path, out);
}

static int begin(void **state)
{
    struct test *t;

    if (test_setup(state) != 0)
        return -1;
    t = *state;
    test_path(t, "any"); /* makes the fixture's folder */
    signal(SIGPIPE, SIG_IGN);
    return setenv("TMPDIR", t->dir, 1);
}

static int finish(void **state)
{
    unsetenv("TMPDIR");
    return test_teardown(state);
}

#define scratch_test(f) cmocka_unit_test_setup_teardown(f, begin, finish)

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static bool goes_away(const char *path)
{
    for (int i = 0; i < 6000 && exists(path); i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    return !exists(path);
}

static void fill(struct test *t, const char *path)
{
    assert_int_equal(mkdir(test_format(t, "%s/inner", path), 0700), 0);
    test_write(test_format(t, "%s/inner/file", path), "x", 1);
    assert_int_equal(symlink(t->dir, test_format(t, "%s/link", path)), 0);
}

static char *make(struct test *t, struct pyrt_scratch **out)
{
    char *path;

    assert_ok(pyrt_scratch_new(out, &t->err), &t->err);
    path = test_format(t, "%s", pyrt_scratch_path(*out));
    fill(t, path);
    return path;
}

static void it_is_private_and_removed_with_its_contents(void **state)
{
    struct test *t = *state;
    struct pyrt_scratch *s;
    struct stat st;
    char *path, *kept = test_path(t, "kept");

    test_write(kept, "k", 1);
    path = make(t, &s);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    pyrt_scratch_free(s);
    assert_false(exists(path));
    assert_true(exists(kept)); /* which the link leads to */
    pyrt_scratch_free(NULL);
}

static void a_forked_child_does_not_keep_it(void **state)
{
    struct test *t = *state;
    struct pyrt_scratch *s;
    char *path = make(t, &s);
    pid_t pid = fork();

    if (pid == 0) {
        pause();
        _exit(0);
    }
    pyrt_scratch_free(s);
    assert_false(exists(path));
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* The child writes the folder's path to the pipe, and ends by SIGKILL. */
static void it_goes_with_a_process_that_is_killed(void **state)
{
    struct test *t = *state;
    struct pyrt_scratch *s;
    char path[PATH_MAX] = "";
    int fds[2], status;
    pid_t pid;

    assert_int_equal(pipe(fds), 0);
    pid = fork();
    if (pid == 0) {
        if (pyrt_scratch_new(&s, NULL) == 0 &&
            write(fds[1], pyrt_scratch_path(s), strlen(pyrt_scratch_path(s))) > 0)
            pause();
        _exit(1);
    }
    close(fds[1]);
    assert_true(read(fds[0], path, sizeof path - 1) > 0);
    /* The helper has closed the files that it inherited. */
    fill(t, path);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(read(fds[0], path + strlen(path), 1), 0);
    close(fds[0]);
    assert_true(goes_away(path));
    *strrchr(path, '/') = 0;
    assert_true(goes_away(path)); /* the helper has nothing left to remove */
}

static bool has_link(pid_t pid, const char *target)
{
    char folder[64], name[PATH_MAX], link[64];
    struct dirent *e;
    bool found = false;
    DIR *d;

    snprintf(folder, sizeof folder, "/proc/%d/fd", (int)pid);
    d = opendir(folder);
    while (d && (e = readdir(d))) {
        ssize_t n;

        snprintf(name, sizeof name, "%s/%s", folder, e->d_name);
        n = readlink(name, link, sizeof link - 1);
        link[n > 0 ? n : 0] = 0;
        found = found || strcmp(link, target) == 0;
    }
    if (d)
        closedir(d);
    return found;
}

/* The process, other than this one, that has the other end of the pipe `fd` open. */
static pid_t other_end_of(int fd)
{
    char name[64], target[64] = "";
    struct dirent *e;
    pid_t found = 0;
    DIR *d = opendir("/proc");

    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    if (readlink(name, target, sizeof target - 1) < 0 || !d)
        return 0;
    while ((e = readdir(d))) {
        pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);

        if (pid > 0 && pid != getpid() && has_link(pid, target))
            found = pid;
    }
    closedir(d);
    return found;
}

static void without_its_helper_it_is_removed_all_the_same(void **state)
{
    struct test *t = *state;
    struct pyrt_scratch *s;
    int next = dup(0); /* the first end of the pipe gets this number, and ours the one after it */
    char *path;
    pid_t helper;

    close(next);
    path = make(t, &s);
    helper = other_end_of(next + 1);
    assert_true(helper > 1);
    assert_int_equal(kill(helper, SIGKILL), 0);
    while (other_end_of(next + 1))
        continue;
    assert_true(exists(path));
    pyrt_scratch_free(s);
    assert_false(exists(path));
}

static void signals_do_not_disturb_it(void **state)
{
    struct pyrt_scratch *s;
    char *path;

    interrupts.waitpid = 1;
    interrupts.read = 1; /* the helper's, which has a copy of the number, and later this one's */
    path = make(*state, &s);
    pyrt_scratch_free(s);
    assert_int_equal(interrupts.waitpid, 0);
    assert_int_equal(interrupts.read, 0);
    assert_false(exists(path));
}

/* ---- where there is none ---- */

static void nothing_is_left_where_it_cannot_be_made(void **state)
{
    struct pyrt_scratch *s = NULL;
    struct test *t = *state;

    no_fork = true;
    assert_int_equal(pyrt_scratch_new(&s, &t->err), EXTI_E_IO);
    no_fork = false;
    assert_int_equal(t->err.os_error, EAGAIN);
    assert_says(&t->err, "helper");
    no_realpath = true;
    assert_int_equal(pyrt_scratch_new(&s, &t->err), EXTI_E_IO);
    no_realpath = false;
    assert_int_equal(t->err.os_error, EACCES);
    assert_null(s);
    assert_string_equal(test_list(t, t->dir), "");
}

static void a_missing_TMPDIR_is_named(void **state)
{
    struct test *t = *state;
    struct pyrt_scratch *s = NULL;

    setenv("TMPDIR", test_path(t, "nowhere"), 1);
    assert_int_equal(pyrt_scratch_new(&s, &t->err), EXTI_E_IO);
    assert_int_equal(t->err.os_error, ENOENT);
    assert_string_equal(t->err.file, test_path(t, "nowhere"));
    assert_says(&t->err, "TMPDIR names another place");
    assert_null(s);
}

static void without_TMPDIR_it_is_in_tmp(void **state)
{
    struct test *t = *state;
    struct pyrt_scratch *s;

    for (int i = 0; i < 2; i++) {
        if (i == 0)
            setenv("TMPDIR", "", 1);
        else
            unsetenv("TMPDIR");
        assert_ok(pyrt_scratch_new(&s, &t->err), &t->err);
        assert_memory_equal(pyrt_scratch_path(s), "/tmp/extisolate-", 16);
        pyrt_scratch_free(s);
    }
}

/* With room for no file, for one pipe, and for three files: no helper then, and no folder. */
static void a_full_table_of_files_leaves_no_folder(void **state)
{
    struct test *t = *state;
    struct pyrt_scratch *s;
    struct rlimit was, few;
    int next = dup(0), rc;

    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    for (int room = 0; room < 4; room++) {
        few = (struct rlimit){(rlim_t)(next + room), was.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        rc = pyrt_scratch_new(&s, &t->err);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
        assert_int_equal(rc, EXTI_E_IO);
        assert_int_equal(t->err.os_error, EMFILE);
        assert_says(&t->err, "cannot start the helper");
        assert_string_equal(test_list(t, t->dir), "");
    }
    rc = dup(0);
    assert_int_equal(rc, next);
    close(rc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(it_is_private_and_removed_with_its_contents),
        scratch_test(a_forked_child_does_not_keep_it),
        scratch_test(it_goes_with_a_process_that_is_killed),
        scratch_test(without_its_helper_it_is_removed_all_the_same),
        scratch_test(a_missing_TMPDIR_is_named),
        scratch_test(without_TMPDIR_it_is_in_tmp),
        scratch_test(a_full_table_of_files_leaves_no_folder),
        scratch_test(signals_do_not_disturb_it),
        scratch_test(nothing_is_left_where_it_cannot_be_made),
    };

    return cmocka_run_group_tests_name("runtime/scratch", tests, NULL, NULL);
}
