#include "tests/support/exti_test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/os/fs_id.h"
#include "base/os/fs_map.h"
#include "base/os/fs_read.h"

static void make_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd);
}

/* All functions that open a file report the same error. */
static void id_map_and_read_refuse_non_files(void **state)
{
    struct test *t = *state;
    const struct {
        const char *path;
        int os_error; /* -1: any */
        const char *says, *id_says;
    } cases[] = {
        {test_path(t, "missing"), ENOENT, "No such file", "No such file"},
        {test_path(t, "dir"), EISDIR, "a directory, not a regular file", "a directory"},
        {test_path(t, "fifo"), 0, "a FIFO, not a regular file", "a FIFO"},
        {test_path(t, "socket"), -1, "", "a socket, not a regular file"},
        {"/dev/null", 0, "a device, not a regular file", "a device"},
        {test_path(t, "loop"), ELOOP, "symbolic links", "symbolic links"},
        {test_path(t, "plain/f"), ENOTDIR, "Not a directory", "Not a directory"},
    };

    test_write(test_path(t, "plain"), "x", 1);
    assert_int_equal(mkdir(cases[1].path, 0700), 0);
    assert_int_equal(mkfifo(cases[2].path, 0600), 0);
    make_socket(cases[3].path);
    assert_int_equal(symlink("loop", cases[5].path), 0);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct exti_mapping m = {.n = 77};
        struct exti_file_id id = {.size = 77};
        char *text = "untouched";
        size_t n = 77;

        assert_exti(exti__fs_map(cases[i].path, &m, &id, &t->err), EXTI_E_IO, &t->err,
                    EXTI_NO_OFFSET);
        assert_says(&t->err, cases[i].says);
        assert_string_equal(t->err.file, cases[i].path);
        if (cases[i].os_error >= 0)
            assert_int_equal(t->err.os_error, cases[i].os_error);
        assert_exti(exti__fs_map_head(cases[i].path, 1, &m, &t->err), EXTI_E_IO, &t->err,
                    EXTI_NO_OFFSET);
        assert_says(&t->err, cases[i].says);
        assert_exti(exti__fs_read(cases[i].path, 10, &text, &n, &t->err), EXTI_E_IO, &t->err,
                    EXTI_NO_OFFSET);
        assert_says(&t->err, cases[i].says);
        assert_exti(exti__fs_id(cases[i].path, &id, &t->err), EXTI_E_IO, &t->err, EXTI_NO_OFFSET);
        assert_says(&t->err, cases[i].id_says);
        assert_string_equal(t->err.file, cases[i].path);
        assert_int_equal(m.n, 77);
        assert_int_equal(id.size, 77);
        assert_int_equal(n, 77);
    }
}

static void realpath_resolves_links(void **state)
{
    struct test *t = *state;
    char *real, *base = realpath(t->dir, NULL);

    test_write(test_path(t, "f"), "x", 1);
    assert_int_equal(symlink("f", test_path(t, "link")), 0);
    assert_ok(exti__fs_realpath(test_path(t, "./link"), &real, &t->err), &t->err);
    assert_string_equal(real, test_format(t, "%s/f", base));
    exti__free(real);
    free(base);
    assert_exti(exti__fs_realpath(test_path(t, "missing"), &real, &t->err), EXTI_E_IO, &t->err,
                EXTI_NO_OFFSET);
    assert_int_equal(t->err.os_error, ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(id_map_and_read_refuse_non_files),
        exti_test(realpath_resolves_links),
    };

    return cmocka_run_group_tests_name("base/os/fs_id", tests, NULL, NULL);
}
