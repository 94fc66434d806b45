#include "tests/support/exti_test.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/os/fs_remove.h"

static void remove_accepts_a_missing_file(void **state)
{
    struct test *t = *state;
    char *path = test_path(t, "f");

    test_write(path, "x", 1);
    assert_ok(exti__fs_remove(path, &t->err), &t->err);
    assert_int_equal(access(path, F_OK), -1);
    assert_ok(exti__fs_remove(path, &t->err), &t->err);
    assert_exti(exti__fs_remove(t->dir, &t->err), EXTI_E_IO, &t->err, EXTI_NO_OFFSET);
    assert_string_equal(t->err.file, t->dir);
}

static void rmdir_removes_only_empty_folders(void **state)
{
    struct test *t = *state;
    char *dir = test_path(t, "d"), *file = test_path(t, "d/f");
    bool removed = true;

    assert_int_equal(mkdir(dir, 0700), 0);
    test_write(file, "x", 1);
    assert_ok(exti__fs_rmdir(dir, &removed, &t->err), &t->err);
    assert_false(removed);
    assert_exti(exti__fs_rmdir(file, &removed, &t->err), EXTI_E_IO, &t->err, EXTI_NO_OFFSET);
    assert_int_equal(t->err.os_error, ENOTDIR);
    assert_int_equal(unlink(file), 0);
    assert_ok(exti__fs_rmdir(dir, &removed, &t->err), &t->err);
    assert_true(removed);
    assert_ok(exti__fs_rmdir(dir, &removed, &t->err), &t->err);
    assert_false(removed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(remove_accepts_a_missing_file),
        exti_test(rmdir_removes_only_empty_folders),
    };

    return cmocka_run_group_tests_name("base/os/fs_remove", tests, NULL, NULL);
}
