#define _GNU_SOURCE /* F_SETLEASE */
#include "tests/support/exti_test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
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

/* Large files were mapped once: then this was a SIGBUS. */
static void map_keeps_a_file_that_is_truncated_or_overwritten(void **state)
{
    static const size_t sizes[] = {1000, 300000, 5000000};
    struct test *t = *state;
    char *path = test_path(t, "f");

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        uint8_t *bytes = test_alloc(t, sizes[i]);
        struct exti_mapping m, image;
        int fd;

        memset(bytes, 'o', sizes[i]);
        test_write(path, bytes, sizes[i]);
        assert_ok(exti__fs_map(path, &m, NULL, &t->err), &t->err);
        assert_ok(exti__fs_map_image(&m, 1, &image, &t->err), &t->err);
        fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
        assert_int_equal(write(fd, "new", 3), 3);
        close(fd);
        assert_memory_equal(m.p, bytes, sizes[i]);
        assert_memory_equal(image.p, bytes, sizes[i]);
        exti__fs_unmap(&m);
        exti__fs_unmap(&image);
    }
}

static void error_details_are_optional(void **state)
{
    struct test *t = *state;
    struct exti_mapping m;

    assert_int_equal(exti__fs_map(t->dir, &m, NULL, NULL), EXTI_E_IO);
    assert_int_equal(exti__fs_map(test_path(t, "missing"), &m, NULL, NULL), EXTI_E_IO);
    assert_int_equal(exti__fs_replace(test_path(t, "no/f"), "x", 1, 0, NULL), EXTI_E_IO);
}

/* A format whose files are read but for all between the head and the last page, in two parts. */
static size_t last_page(struct exti_span head, uint64_t size,
                        struct exti_range out[EXTI_UNREAD_TABLES])
{
    assert_int_equal(head.n, EXTI_UNREAD_HEAD);
    out[0] = (struct exti_range){(size_t)size - 4096, 4000};
    out[1] = (struct exti_range){(size_t)size - 96, 96};
    return head.p[0] != 'R' ? 2 : 0;
}

static void middle_parts(struct exti_span head, const struct exti_span table[EXTI_UNREAD_TABLES],
                         uint64_t size, struct exti_unread *out)
{
    const size_t half = (size_t)size / 2;

    assert_int_equal(head.n, EXTI_UNREAD_HEAD);
    assert_int_equal(table[0].n, 4000);
    assert_int_equal(table[1].n, 96);
    out->count = 2;
    out->part[0] = (struct exti_range){4096, half - 4096};
    out->part[1] = (struct exti_range){half + 100, (size_t)size - 4096 - half - 100};
}

static const struct exti_unread_ops middle_unread = {last_page, middle_parts};

static void unread_parts_are_zeros(void **state)
{
    enum { SIZE = 1 << 20 };
    struct test *t = *state;
    char *path = test_path(t, "f");
    uint8_t *bytes = test_alloc(t, SIZE), *expected = test_alloc(t, SIZE + 10);
    struct exti_mapping m, image;

    memset(bytes, 'x', SIZE);
    memset(expected, 'x', 4096);
    memset(expected + SIZE / 2, 'x', 100);
    memset(expected + SIZE - 4096, 'x', 4096);
    test_write(path, bytes, SIZE);
    assert_ok(exti__fs_map_parts(path, &middle_unread, &m, NULL, &t->err), &t->err);
    assert_int_equal(m.unread.count, 2);
    assert_memory_equal(m.p, expected, SIZE);
    assert_ok(exti__fs_map_image(&m, 10, &image, &t->err), &t->err);
    assert_int_equal(image.unread.count, 2);
    assert_memory_equal(image.p, expected, SIZE + 10);
    exti__fs_unmap(&m);
    exti__fs_unmap(&image);

    bytes[0] = 'R';
    test_write(path, bytes, SIZE);
    assert_ok(exti__fs_map_parts(path, &middle_unread, &m, NULL, &t->err), &t->err);
    assert_int_equal(m.unread.count, 0);
    assert_memory_equal(m.p, bytes, SIZE);
    exti__fs_unmap(&m);
}

/* How many KiB of the memory are in use; -1 if a part of it is not mapped. */
static long used_memory(struct test *t, const void *p, size_t n)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (n + page - 1) / page;
    unsigned char *used = test_alloc(t, pages);
    size_t count = 0;

    if (mincore((void *)(uintptr_t)p, n, used) != 0)
        return -1;
    for (size_t i = 0; i < pages; i++)
        count += used[i] & 1;
    return (long)(count * page >> 10);
}

/* Parts of 100 KiB in the first 2 MiB, of 1.5 MiB in the next and of 100 KiB at the end. */
static void few_parts(struct exti_span head, const struct exti_span table[EXTI_UNREAD_TABLES],
                      uint64_t size, struct exti_unread *out)
{
    (void)head;
    (void)table;
    out->count = 2;
    out->part[0] = (struct exti_range){100 << 10, (2 << 20) - (100 << 10)};
    out->part[1] = (struct exti_range){7 << 19, (size_t)size - (7 << 19) - (100 << 10)};
}

/* A huge page takes 2 MiB, however little of it is used. */
static void memory_is_bounded_by_what_is_read(void **state)
{
    static const struct exti_unread_ops few = {last_page, few_parts};
    enum { SIZE = 64 << 20, READ = 1736, HUGE_PAGE = 2048 };
    struct test *t = *state;
    char *path = test_path(t, "f");
    struct exti_mapping m;

    test_write(path, "", 0);
    assert_int_equal(truncate(path, SIZE), 0);
    assert_ok(exti__fs_map_parts(path, &few, &m, NULL, &t->err), &t->err);
    assert_int_equal((uintptr_t)m.p % (HUGE_PAGE << 10), 0);
    assert_in_range(used_memory(t, m.p, SIZE), READ, READ - 1536 + HUGE_PAGE);
    exti__fs_unmap(&m);
}

static long mapped_pages(struct test *t)
{
    size_t n;

    return strtol(test_read(t, "/proc/self/statm", &n), NULL, 10);
}

static void memory_is_given_back(void **state)
{
    static const size_t sizes[] = {300001, 5000000, 4 << 20, (4 << 20) + 1};
    struct test *t = *state;
    char *path = test_path(t, "f");
    struct exti_mapping m;

    if (test_is_emulated())
        skip_because("what the emulator has mapped is counted, too");
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        long before;

        test_write(path, "", 0);
        assert_int_equal(truncate(path, (off_t)sizes[i]), 0);
        before = mapped_pages(t);
        for (int k = 0; k < 100; k++) {
            assert_ok(exti__fs_map(path, &m, NULL, &t->err), &t->err);
            assert_true(used_memory(t, m.p, sizes[i]) >= 0);
            exti__fs_unmap(&m);
        }
        assert_in_range(mapped_pages(t), 0, before + 200);
    }
}

static void head_is_all_that_is_read(void **state)
{
    struct test *t = *state;
    char *path = test_path(t, "f");
    struct exti_mapping m;

    test_write(path, "some bytes", 10);
    assert_ok(exti__fs_map_head(path, 4, &m, &t->err), &t->err);
    assert_int_equal(m.n, 4);
    assert_memory_equal(m.p, "some", 4);
    exti__fs_unmap(&m);
    assert_ok(exti__fs_map_head(path, 64, &m, &t->err), &t->err);
    assert_int_equal(m.n, 10);
    exti__fs_unmap(&m);
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
    assert_ok(exti__fs_map_parts(path, &middle_unread, &m, &id, &t->err), &t->err);
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

static void image_is_private_and_has_room(void **state)
{
    static const size_t sizes[] = {1, 100, 4095, 4096, 4097, 65536, 300001};
    static const size_t rooms[] = {0, 1, 4095, 4096, 10000};
    struct test *t = *state;
    char *path = test_path(t, "f");

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        uint8_t *bytes = test_alloc(t, sizes[i]);
        struct exti_mapping m, source;

        for (size_t k = 0; k < sizes[i]; k++)
            bytes[k] = (uint8_t)(k * 7 + 1);
        test_write(path, bytes, sizes[i]);
        assert_ok(exti__fs_map(path, &source, NULL, &t->err), &t->err);
        for (size_t r = 0; r < ARRAY_SIZE(rooms); r++) {
            assert_ok(exti__fs_map_image(&source, rooms[r], &m, &t->err), &t->err);
            assert_int_equal(m.n, sizes[i]);
            assert_true(!m.mapped || m.mapped >= m.n + rooms[r]);
            assert_memory_equal(m.p, bytes, m.n);
            for (size_t k = 0; k < rooms[r]; k++)
                assert_int_equal(m.p[m.n + k], 0);
            memset(m.p, 0xaa, m.n + rooms[r]);
            exti__fs_unmap(&m);
        }
        assert_memory_equal(source.p, bytes, sizes[i]);
        exti__fs_unmap(&source);
    }
}

static void image_refuses_more_room_than_memory(void **state)
{
    static const uint64_t rooms[] = {UINT64_MAX, UINT64_MAX - 5, UINT64_MAX - 4096,
                                     (uint64_t)1 << 63};
    struct test *t = *state;
    char *path = test_path(t, "f");
    struct exti_mapping m, source;

    test_write(path, "bytes", 5);
    assert_ok(exti__fs_map(path, &source, NULL, &t->err), &t->err);
    for (size_t i = 0; i < ARRAY_SIZE(rooms); i++)
        assert_exti(exti__fs_map_image(&source, rooms[i], &m, &t->err), EXTI_E_NOMEM, &t->err,
                    EXTI_NO_OFFSET);
    exti__fs_unmap(&source);
}

static double milliseconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* On kernels whose file times advance with the clock tick, a second change within a tick would not
 * show. */
static void parts_of_a_new_file_wait_for_the_tick(void **state)
{
    struct test *t = *state;
    char *path = test_path(t, "f");
    const double start = milliseconds();
    struct exti_file_id id, again;
    struct exti_mapping m;
    int fd;

    test_write(path, "some bytes", 10);
    assert_ok(exti__fs_map_parts(path, &middle_unread, &m, &id, &t->err), &t->err);
    assert_true(milliseconds() - start >= 10);
    exti__fs_unmap(&m);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(write(fd, "other", 5), 5);
    close(fd);
    assert_ok(exti__fs_id(path, &again, &t->err), &t->err);
    assert_false(exti__fs_same_id(&id, &again));
}

#ifdef F_SETLEASE
/* Overwrites the file's bytes with n's: half of them, and after a while the rest. */
static pid_t pausing_writer(const char *path, size_t n)
{
    char *bytes = malloc(n), begun;
    int ends[2];
    pid_t pid;

    assert_non_null(bytes);
    memset(bytes, 'n', n);
    assert_int_equal(pipe(ends), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        int fd = open(path, O_WRONLY | O_CLOEXEC);

        if (pwrite(fd, bytes, n / 2, 0) < 0 || write(ends[1], "", 1) != 1)
            _exit(1);
        usleep(150000);
        _exit(pwrite(fd, bytes + n / 2, n - n / 2, (off_t)(n / 2)) < 0);
    }
    free(bytes);
    assert_int_equal(read(ends[0], &begun, 1), 1);
    close(ends[0]);
    close(ends[1]);
    return pid;
}

static void file_that_is_being_written_is_waited_for(void **state)
{
    enum { SIZE = 1 << 16 };
    struct test *t = *state;
    char *path = test_path(t, "f");
    uint8_t *bytes = test_alloc(t, SIZE);
    struct exti_mapping m;
    int status;
    pid_t pid;

    memset(bytes, 'o', SIZE);
    test_write(path, bytes, SIZE);
    pid = pausing_writer(path, SIZE);
    usleep(30000); /* its first write is older than a tick */
    assert_ok(exti__fs_map_parts(path, &middle_unread, &m, NULL, &t->err), &t->err);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(m.p[0], 'n');
    assert_int_equal(m.p[SIZE - 1], 'n');
    exti__fs_unmap(&m);
}

static void writer_that_stays_is_not_waited_for_without_end(void **state)
{
    struct test *t = *state;
    char *path = test_path(t, "f");
    uint8_t *bytes = test_alloc(t, 1 << 16);
    struct exti_mapping m;
    int fd;

    test_write(path, bytes, 1 << 16);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_ok(exti__fs_map_parts(path, &middle_unread, &m, NULL, &t->err), &t->err);
    exti__fs_unmap(&m);
    close(fd);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(map_gives_bytes_and_identity),
        exti_test(map_follows_links),
        exti_test(map_keeps_a_file_that_is_replaced),
        exti_test(error_details_are_optional),
        exti_test(map_refuses_empty_and_huge_files),
        exti_test(map_refuses_an_unreadable_file),
        exti_test(map_keeps_a_file_that_is_truncated_or_overwritten),
        exti_test(unread_parts_are_zeros),
        exti_test(memory_is_bounded_by_what_is_read),
        exti_test(memory_is_given_back),
        exti_test(head_is_all_that_is_read),
        exti_test(image_is_private_and_has_room),
        exti_test(image_refuses_more_room_than_memory),
        exti_test(parts_of_a_new_file_wait_for_the_tick),
#ifdef F_SETLEASE
        exti_test(file_that_is_being_written_is_waited_for),
        exti_test(writer_that_stays_is_not_waited_for_without_end),
#endif
    };

    return cmocka_run_group_tests_name("base/os/fs_map", tests, NULL, NULL);
}
