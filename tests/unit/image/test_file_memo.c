#include "tests/support/exti_test.h"

#include <string.h>

#include "loader/image/file_memo.h"

static void a_version_depends_on_the_file_and_what_is_asked_of_it(void **state)
{
    struct test *t = *state;
    char *path = test_path(t, "a");
    uint64_t before, after;

    before = exti__file_version(path);
    assert_int_not_equal(before, 0);
    test_write(path, "x", 1);
    after = exti__file_version(path);
    assert_int_not_equal(after, before);
    assert_int_equal(exti__file_version(path), after);
    assert_int_not_equal(exti__file_version(test_path(t, "b")), after);
    assert_int_not_equal(exti__file_version_with(after, "x"), after);
    assert_int_equal(exti__file_version_with(after, "x"), exti__file_version_with(after, "x"));
    assert_int_not_equal(exti__file_version_with(exti__file_version_with(after, "x"), "y"),
                         exti__file_version_with(exti__file_version_with(after, ""), "xy"));
}

/* Versions that would share one slot of the table. */
static void versions_that_share_slots_are_remembered(void **state)
{
    struct exti_file_memo m = {0};
    const uint64_t slots = sizeof m.slots / sizeof *m.slots;

    (void)state;
    for (uint64_t i = 1; i <= EXTI_FILE_MEMO_WAYS; i++) {
        assert_false(exti__file_memo_has(&m, i * slots));
        exti__file_memo_add(&m, i * slots);
    }
    for (uint64_t i = 1; i <= EXTI_FILE_MEMO_WAYS; i++)
        assert_true(exti__file_memo_has(&m, i * slots));
}

static void one_more_drives_out_one(void **state)
{
    struct exti_file_memo m = {0};
    const uint64_t slots = sizeof m.slots / sizeof *m.slots;
    size_t left = 0;

    (void)state;
    for (uint64_t i = 1; i <= EXTI_FILE_MEMO_WAYS + 1; i++)
        exti__file_memo_add(&m, i * slots + (i << 32));
    for (uint64_t i = 1; i <= EXTI_FILE_MEMO_WAYS + 1; i++)
        left += exti__file_memo_has(&m, i * slots + (i << 32));
    assert_int_equal(left, EXTI_FILE_MEMO_WAYS);
    assert_true(exti__file_memo_has(&m, (EXTI_FILE_MEMO_WAYS + 1) * slots +
                                            ((uint64_t)(EXTI_FILE_MEMO_WAYS + 1) << 32)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(a_version_depends_on_the_file_and_what_is_asked_of_it),
        exti_test(versions_that_share_slots_are_remembered),
        exti_test(one_more_drives_out_one),
    };

    return cmocka_run_group_tests_name("image/file_memo", tests, NULL, NULL);
}
