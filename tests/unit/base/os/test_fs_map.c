#include "tests/support/exti_test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os/fs_id.h"
#include "base/os/fs_map.h"
#include "base/os/fs_replace.h"

static void map_gives_bytes_and_identity(void **state)
{
    struct test *t = *state;
    char *path = test_path(t, "f");
    struct exti_mapping m;
    struct exti_file_id id, looked_up;
    struct stat st;

    test_write(path, "some bytes", 10);
    assert_ok(exti__fs_map(path, &m, &id, &t->err), &t->err);
    assert_int_equal(m.n, 10);
    assert_memory_equal(m.p, "some bytes", 10);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(id.size, 10);
    assert_int_equal(id.inode, st.st_ino);
    assert_int_equal(id.device, st.st_dev);
    assert_int_equal(id.mtime_ns, (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec);
    assert_ok(exti__fs_id(path, &looked_up, &t->err), &t->err);
    assert_memory_equal(&looked_up, &id, sizeof id);
    exti__fs_unmap(&m);
    assert_null(m.p);
    exti__fs_unmap(&m);
    assert_ok(exti__fs_map(path, &m, NULL, &t->err), &t->err);
    exti__fs_unmap(&m);
}

static void map_follows_links(void **state)
{
    struct test *t = *state;
    char *link = test_path(t, "link");
    struct exti_mapping m;

    test_write(test_path(t, "f"), "abc", 3);
    assert_int_equal(symlink("f", link), 0);
    assert_ok(exti__fs_map(link, &m, NULL, &t->err), &t->err);
    assert_memory_equal(m.p, "abc", 3);
    exti__fs_unmap(&m);
}

static void map_keeps_a_file_that_is_replaced(void **state)
{
    struct test *t = *state;
    char *path = test_path(t, "f");
    struct exti_mapping m;

    test_write(path, "old", 3);
    assert_ok(exti__fs_map(path, &m, NULL, &t->err), &t->err);
    assert_ok(exti__fs_replace(path, "", 0, 0, &t->err), &t->err);
    assert_memory_equal(m.p, "old", 3);
    exti__fs_unmap(&m);
}

static void error_details_are_optional(void **state)
{
    struct test *t = *state;
    struct exti_mapping m;

    assert_int_equal(exti__fs_map(t->dir, &m, NULL, NULL), EXTI_E_IO);
    assert_int_equal(exti__fs_map(test_path(t, "missing"), &m, NULL, NULL), EXTI_E_IO);
    assert_int_equal(exti__fs_replace(test_path(t, "no/f"), "x", 1, 0, NULL), EXTI_E_IO);
}

static void map_refuses_empty_and_huge_files(void **state)
{
    struct test *t = *state;
    char *path = test_path(t, "f");
    struct exti_mapping m;
    struct exti_file_id id;

    test_write(path, "", 0);
    assert_exti(exti__fs_map(path, &m, &id, &t->err), EXTI_E_FORMAT, &t->err, 0);
    assert_string_equal(t->err.message, "file is empty");
    assert_string_equal(t->err.file, path);

    assert_int_equal(truncate(path, (off_t)EXTI_MAX_INPUT + 1), 0);
    assert_exti(exti__fs_map(path, &m, &id, &t->err), EXTI_E_UNSUPPORTED, &t->err, EXTI_NO_OFFSET);
    assert_string_equal(t->err.message, "file has 4294967297 bytes, the limit is 4294967296");
    assert_string_equal(t->err.file, path);

    assert_int_equal(truncate(path, (off_t)EXTI_MAX_INPUT), 0);
    assert_ok(exti__fs_map(path, &m, &id, &t->err), &t->err);
    assert_int_equal(m.n, EXTI_MAX_INPUT);
    exti__fs_unmap(&m);
}

/* Root may read every file, so this test runs as another user. */
static void map_refuses_an_unreadable_file(void **state)
{
    struct test *t = *state;
    char *path = test_path(t, "f");
    int status;
    pid_t pid;

    test_write(path, "x", 1);
    assert_int_equal(chmod(path, 0), 0);
    assert_int_equal(chmod(t->dir, 0755), 0);
    pid = fork();
    if (!pid) {
        struct exti_mapping m;
        int rc;

        if (!geteuid() && (setgid(65534) != 0 || setuid(65534) != 0))
            _exit(2);
        rc = exti__fs_map(path, &m, NULL, &t->err);
        _exit(!(rc == EXTI_E_IO && t->err.os_error == EACCES));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void map_copy_is_private_and_has_room(void **state)
{
    static const size_t sizes[] = {1, 100, 4095, 4096, 4097, 65536, 300001};
    static const size_t rooms[] = {0, 1, 4095, 4096, 10000};
    struct test *t = *state;
    char *path = test_path(t, "f");

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        uint8_t *bytes = test_alloc(t, sizes[i]);
        struct exti_mapping m;
        struct exti_file_id id;
        size_t n;

        for (size_t k = 0; k < sizes[i]; k++)
            bytes[k] = (uint8_t)(k * 7 + 1);
        test_write(path, bytes, sizes[i]);
        assert_ok(exti__fs_id(path, &id, &t->err), &t->err);
        for (size_t r = 0; r < ARRAY_SIZE(rooms); r++) {
            assert_ok(exti__fs_map_copy(path, &id, rooms[r], &m, &t->err), &t->err);
            assert_int_equal(m.n, sizes[i]);
            assert_true(!m.mapped || m.mapped >= m.n + rooms[r]);
            assert_memory_equal(m.p, bytes, m.n);
            for (size_t k = 0; k < rooms[r]; k++)
                assert_int_equal(m.p[m.n + k], 0);
            memset(m.p, 0xaa, m.n + rooms[r]);
            exti__fs_unmap(&m);
        }
        assert_memory_equal(test_read(t, path, &n), bytes, sizes[i]);
        assert_int_equal(n, sizes[i]);
    }
}

/* Behind the end of a file, its last page has whatever was written there through a mapping. */
static void map_copy_zeroes_the_room_behind_the_last_page(void **state)
{
    struct test *t = *state;
    char *path = test_path(t, "f");
    struct exti_mapping m;
    struct exti_file_id id;
    uint8_t *shared;
    int fd;

    test_write(path, "0123456789", 10);
    fd = open(path, O_RDWR | O_CLOEXEC);
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    assert_ptr_not_equal(shared, MAP_FAILED);
    memset(shared + 10, 0xee, 4086);
    assert_ok(exti__fs_id(path, &id, &t->err), &t->err);
    assert_ok(exti__fs_map_copy(path, &id, 100, &m, &t->err), &t->err);
    for (size_t k = 0; k < 100; k++)
        assert_int_equal(m.p[10 + k], 0);
    exti__fs_unmap(&m);
    munmap(shared, 4096);
}

static void map_copy_refuses_a_changed_file(void **state)
{
    static const char *const changes[] = {"grown", "touched", "replaced"};
    struct test *t = *state;
    char *path = test_path(t, "f");

    for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
        const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000, .tv_nsec = 1}};
        struct exti_mapping m;
        struct exti_file_id id;

        test_write(path, "bytes", 5);
        assert_ok(exti__fs_id(path, &id, &t->err), &t->err);
        assert_ok(exti__fs_map_copy(path, &id, 0, &m, &t->err), &t->err);
        exti__fs_unmap(&m);
        if (i == 0)
            test_write(path, "longer bytes", 12);
        else if (i == 1)
            assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
        else
            assert_ok(exti__fs_replace(path, "other", 5, 0, &t->err), &t->err);
        assert_exti(exti__fs_map_copy(path, &id, 0, &m, &t->err), EXTI_E_IO, &t->err,
                    EXTI_NO_OFFSET);
        assert_says(&t->err, "changed while it was read");
        assert_string_equal(t->err.file, path);
    }
}

static void map_copy_refuses_more_room_than_memory(void **state)
{
    static const uint64_t rooms[] = {UINT64_MAX, UINT64_MAX - 5, UINT64_MAX - 4096,
                                     (uint64_t)1 << 63};
    struct test *t = *state;
    char *path = test_path(t, "f");
    struct exti_mapping m;
    struct exti_file_id id;

    test_write(path, "bytes", 5);
    assert_ok(exti__fs_id(path, &id, &t->err), &t->err);
    for (size_t i = 0; i < ARRAY_SIZE(rooms); i++) {
        assert_exti(exti__fs_map_copy(path, &id, rooms[i], &m, &t->err), EXTI_E_NOMEM, &t->err,
                    EXTI_NO_OFFSET);
        assert_string_equal(t->err.file, path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(map_gives_bytes_and_identity),
        exti_test(map_follows_links),
        exti_test(map_keeps_a_file_that_is_replaced),
        exti_test(error_details_are_optional),
        exti_test(map_refuses_empty_and_huge_files),
        exti_test(map_refuses_an_unreadable_file),
        exti_test(map_copy_is_private_and_has_room),
        exti_test(map_copy_zeroes_the_room_behind_the_last_page),
        exti_test(map_copy_refuses_a_changed_file),
        exti_test(map_copy_refuses_more_room_than_memory),
    };

    return cmocka_run_group_tests_name("base/os/fs_map", tests, NULL, NULL);
}
