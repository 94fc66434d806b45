#include "tests/support/exti_test.h"

#include <string.h>

#include "base/mem.h"
#include "loader/store/copy_names.h"
#include "loader/store/store_lock.h"

static void want_name(struct test *t, const char *text, const char *expected)
{
    char name[EXTI_NAME_MAX + 1] = "before";

    if (text)
        test_write(test_path(t, EXTI_LOCK_FILE), text, strlen(text));
    assert_ok(exti__store_locked_name(t->dir, name, &t->err), &t->err);
    assert_string_equal(name, expected);
}

static void the_name_is_a_whole_line(void **state)
{
    struct test *t = *state;

    want_name(t, NULL, "");
    want_name(t, "", "");
    want_name(t, "abcdef", "");
    want_name(t, "abcdef\n", "abcdef");
    want_name(t, "abc/def\n", "");
    want_name(t, "abcdef\nmore\n", "");
}

/* A directory that has a name must not be taken for one that has none. */
static void memory_that_is_out_is_no_answer(void **state)
{
    struct test *t = *state;
    char name[EXTI_NAME_MAX + 1];
    int rc = EXTI_E_NOMEM;
    long failed = 0;

    test_write(test_path(t, EXTI_LOCK_FILE), "abcdef\n", 7);
    for (; rc == EXTI_E_NOMEM; failed++) {
        t->err = (struct exti_error){0};
        exti__mem_fail_after(failed);
        rc = exti__store_locked_name(t->dir, name, &t->err);
        exti__mem_fail_after(-1);
        assert_int_equal(t->err.code, rc);
    }
    assert_int_equal(rc, 0);
    assert_string_equal(name, "abcdef");
    assert_true(failed > 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(the_name_is_a_whole_line),
        exti_test(memory_that_is_out_is_no_answer),
    };

    return cmocka_run_group_tests_name("store/locked_name", tests, NULL, NULL);
}
