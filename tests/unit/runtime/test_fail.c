#include "tests/support/exti_test.h"

#include <errno.h>
#include <string.h>

#include "runtime/fail.h"

static void the_error_is_described(void **state)
{
    struct test *t = *state;

    assert_exti(pyrt_fail(&t->err, EXTI_E_ARG, "%s of %d", "one", 2), EXTI_E_ARG, &t->err,
                EXTI_NO_OFFSET);
    assert_string_equal(t->err.message, "one of 2");
    assert_string_equal(t->err.file, "");
    assert_exti(pyrt_fail_os(&t->err, ENOENT, "/a/file", "cannot be read"), EXTI_E_IO, &t->err,
                EXTI_NO_OFFSET);
    assert_int_equal(t->err.os_error, ENOENT);
    assert_string_equal(t->err.file, "/a/file");
    assert_string_equal(t->err.message, "cannot be read: No such file or directory");
}

static void nobody_need_ask_for_it(void **state)
{
    (void)state;
    assert_int_equal(pyrt_fail(NULL, EXTI_E_LOAD, "%d", 1), EXTI_E_LOAD);
    assert_int_equal(pyrt_fail_os(NULL, EIO, "", ""), EXTI_E_IO);
}

static void what_is_too_long_is_cut(void **state)
{
    struct test *t = *state;
    char *text = test_alloc(t, 4096);

    memset(text, 'x', 4095);
    pyrt_fail(&t->err, EXTI_E_ARG, "%s", text);
    assert_int_equal(strlen(t->err.message), sizeof t->err.message - 1);
    pyrt_fail_os(&t->err, EIO, text, text);
    assert_int_equal(strlen(t->err.file), sizeof t->err.file - 1);
}

static void an_unknown_error_has_its_number(void **state)
{
    struct test *t = *state;

    pyrt_fail_os(&t->err, 98765, "", "odd");
    assert_says(&t->err, "98765");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(the_error_is_described),
        exti_test(nobody_need_ask_for_it),
        exti_test(what_is_too_long_is_cut),
        exti_test(an_unknown_error_has_its_number),
    };

    return cmocka_run_group_tests_name("runtime/fail", tests, NULL, NULL);
}
