#include "tests/support/exti_test.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/os/fs_pieces.h"

static void pieces_are_the_bytes_at_their_offset(void **state)
{
    static const size_t n = 3 * EXTI_PIECE + 5;
    static const struct {
        uint64_t at;
        size_t n;
    } pieces[] = {{0, 1}, {7, EXTI_PIECE}, {3 * EXTI_PIECE + 4, 1}, {0, 3 * EXTI_PIECE + 5}};
    struct test *t = *state;
    char *path = test_path(t, "f");
    uint8_t *bytes = test_alloc(t, n), *piece = test_alloc(t, n);
    struct exti_pieces f;
    struct exti_file_id id;

    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)(i * 31 + i / 256);
    test_write(path, bytes, n);
    assert_ok(exti__fs_pieces_open(path, &f, &t->err), &t->err);
    assert_ok(exti__fs_id(path, &id, &t->err), &t->err);
    assert_true(exti__fs_same_id(&f.id, &id));
    for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
        memset(piece, 0, n);
        assert_ok(exti__fs_pieces_read(&f, pieces[i].at, piece, pieces[i].n, &t->err), &t->err);
        assert_memory_equal(piece, bytes + pieces[i].at, pieces[i].n);
    }
    assert_ok(exti__fs_pieces_check(&f, &t->err), &t->err);
    exti__fs_pieces_close(&f);
}

static void a_file_that_ends_early_has_changed(void **state)
{
    struct test *t = *state;
    char *path = test_path(t, "f"), piece[10];
    struct exti_pieces f;

    test_write(path, "0123456789", 10);
    assert_ok(exti__fs_pieces_open(path, &f, &t->err), &t->err);
    assert_int_equal(truncate(path, 4), 0);
    assert_exti(exti__fs_pieces_read(&f, 0, piece, 10, &t->err), EXTI_E_IO, &t->err,
                EXTI_NO_OFFSET);
    assert_int_equal(t->err.os_error, ESTALE);
    assert_string_equal(t->err.file, path);
    assert_exti(exti__fs_pieces_check(&f, &t->err), EXTI_E_IO, &t->err, EXTI_NO_OFFSET);
    assert_int_equal(t->err.os_error, ESTALE);
    exti__fs_pieces_close(&f);
}

/* The open file is another than the one that has its name now. */
static void a_replaced_file_is_read_to_its_end(void **state)
{
    struct test *t = *state;
    char *path = test_path(t, "f"), *other = test_path(t, "g"), piece[3];
    struct exti_pieces f;

    test_write(path, "old", 3);
    test_write(other, "new", 3);
    assert_ok(exti__fs_pieces_open(path, &f, &t->err), &t->err);
    assert_int_equal(rename(other, path), 0);
    assert_ok(exti__fs_pieces_read(&f, 0, piece, 3, &t->err), &t->err);
    assert_memory_equal(piece, "old", 3);
    exti__fs_pieces_close(&f);
}

static void only_regular_files_are_opened(void **state)
{
    struct test *t = *state;
    struct exti_pieces f;

    assert_exti(exti__fs_pieces_open(t->dir, &f, &t->err), EXTI_E_IO, &t->err, EXTI_NO_OFFSET);
    assert_int_equal(t->err.os_error, EISDIR);
    assert_exti(exti__fs_pieces_open(test_path(t, "missing"), &f, &t->err), EXTI_E_IO, &t->err,
                EXTI_NO_OFFSET);
    assert_int_equal(t->err.os_error, ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(pieces_are_the_bytes_at_their_offset),
        exti_test(a_file_that_ends_early_has_changed),
        exti_test(a_replaced_file_is_read_to_its_end),
        exti_test(only_regular_files_are_opened),
    };

    return cmocka_run_group_tests_name("base/os/fs_pieces", tests, NULL, NULL);
}
