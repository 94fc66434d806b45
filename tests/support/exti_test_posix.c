#include "tests/support/exti_test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int test_setup(void **state)
{
    const char *base = getenv("TMPDIR");
    struct test *t = calloc(1, sizeof *t);

    if (!t)
        return -1;
    snprintf(t->dir, sizeof t->dir, "%s/exti-test-XXXXXX", base && *base == '/' ? base : "/tmp");
    if (!mkdtemp(t->dir)) {
        print_error("cannot make %s: %s\n", t->dir, strerror(errno));
        free(t);
        return -1;
    }
    *state = t;
    return 0;
}

static int remove_tree_at(int parent, const char *name)
{
    struct dirent *entry;
    DIR *d;
    int fd, rc = 0;

    if (unlinkat(parent, name, 0) == 0)
        return 0;
    fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -1;
    fchmod(fd, 0700);
    d = fdopendir(fd);
    if (!d) {
        close(fd);
        return -1;
    }
    while ((entry = readdir(d)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            rc |= remove_tree_at(fd, entry->d_name);
    }
    closedir(d);
    return rc | unlinkat(parent, name, AT_REMOVEDIR);
}

int test_teardown(void **state)
{
    struct test *t = *state;
    int rc = remove_tree_at(AT_FDCWD, t->dir);

    if (rc)
        print_error("cannot remove %s: %s\n", t->dir, strerror(errno));
    test_end(t);
    return rc;
}

/* Reads to the end of `fd` and closes it. */
static char *read_fd(struct test *t, int fd, size_t *n)
{
    size_t have = 0, cap = 1 << 16;
    char *p = malloc(cap), *owned;
    ssize_t got;

    while (p && ((got = read(fd, p + have, cap - have)) > 0 || (got < 0 && errno == EINTR))) {
        if (got > 0)
            have += (size_t)got;
        if (have == cap) {
            char *more = realloc(p, cap *= 2);

            if (!more)
                free(p);
            p = more;
        }
    }
    close(fd);
    assert_non_null(p);
    owned = test_alloc(t, have + 1);
    memcpy(owned, p, have);
    free(p);
    if (n)
        *n = have;
    return owned;
}

char *test_read(struct test *t, const char *path, size_t *n)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        fail_msg("cannot open %s: %s", path, strerror(errno));
    return read_fd(t, fd, n);
}

void test_write(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "we");
    bool done;

    if (!f)
        fail_msg("cannot open %s: %s", path, strerror(errno));
    done = fwrite(p, 1, n, f) == n;
    if (fclose(f) != 0 || !done)
        fail_msg("cannot write %s: %s", path, strerror(errno));
}

void test_copy(struct test *t, const char *from, const char *to)
{
    struct stat st;
    size_t n;
    char *p = test_read(t, from, &n);

    test_write(to, p, n);
    if (stat(from, &st) != 0 || chmod(to, st.st_mode & 07777) != 0)
        fail_msg("cannot copy the mode of %s: %s", from, strerror(errno));
}

static int order_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char *test_list(struct test *t, const char *dir)
{
    size_t count = 0, cap = 16, size = 1;
    char **names = test_alloc(t, cap * sizeof *names), *text;
    struct dirent *entry;
    DIR *d = opendir(dir);

    if (!d)
        fail_msg("cannot open folder %s: %s", dir, strerror(errno));
    while ((entry = readdir(d)) != NULL) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        if (count == cap) {
            char **more = test_alloc(t, 2 * cap * sizeof *more);

            memcpy(more, names, cap * sizeof *names);
            names = more;
            cap *= 2;
        }
        names[count++] = test_format(t, "%s\n", entry->d_name);
        size += strlen(entry->d_name) + 1;
    }
    closedir(d);
    qsort(names, count, sizeof *names, order_names);
    text = test_alloc(t, size);
    for (size_t i = 0; i < count; i++)
        strcat(text, names[i]);
    return text;
}

int test_runv(struct test *t, char **out, char *const argv[])
{
    int fds[2], status, null;
    char *text;
    pid_t pid;

    assert_int_equal(pipe(fds), 0);
    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        null = open("/dev/null", O_RDONLY);
        dup2(null, 0);
        dup2(fds[1], 1);
        dup2(fds[1], 2);
        close(fds[0]);
        close(fds[1]);
        execvp(argv[0], argv);
        _exit(127);
    }
    close(fds[1]);
    text = read_fd(t, fds[0], NULL);
    while (waitpid(pid, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    if (out)
        *out = text;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Gives an argument vector: the program, then the arguments up to NULL. */
static char **argument_vector(struct test *t, const char *program, va_list ap)
{
    size_t n = 1, cap = 64;
    char **argv = test_alloc(t, cap * sizeof *argv);

    argv[0] = test_format(t, "%s", program);
    while ((argv[n] = va_arg(ap, char *)) != NULL) {
        if (++n == cap)
            fail_msg("%s: more than %zu arguments", program, cap - 1);
    }
    return argv;
}

int test_run(struct test *t, char **out, const char *program, ...)
{
    char **argv;
    va_list ap;

    va_start(ap, program);
    argv = argument_vector(t, program, ap);
    va_end(ap);
    return test_runv(t, out, argv);
}

char *test_must_run(struct test *t, const char *program, ...)
{
    char **argv, *out = NULL;
    va_list ap;
    int status;

    va_start(ap, program);
    argv = argument_vector(t, program, ap);
    va_end(ap);
    status = test_runv(t, &out, argv);
    if (status)
        fail_msg("%s %s ended with status %d and said:\n%s", program, argv[1] ? argv[1] : "",
                 status, out);
    return out;
}

bool test_have(const char *program)
{
    const char *path = getenv("PATH");
    char file[4096];

    while (path && *path) {
        size_t n = strcspn(path, ":");

        snprintf(file, sizeof file, "%.*s/%s", (int)n, path, program);
        if (access(file, X_OK) == 0)
            return true;
        path += n + (path[n] == ':');
    }
    return false;
}

void test_time_limit(unsigned seconds)
{
    alarm(seconds);
}

void test_build_inputs(struct test *t, const char *group, char folder[PATH_MAX])
{
    const char *build = getenv("EXTI_BUILD") ? getenv("EXTI_BUILD") : "build";
    char *inputs = test_format(t, "%s/%s", build, group), *out;

    if (test_run(t, &out, test_format(t, "tests/%s/build.sh", group), inputs, NULL) != 0)
        fail_msg("tests/%s/build.sh: %s", group, out);
    assert_non_null(realpath(inputs, folder));
}
