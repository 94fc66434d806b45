#include "tests/support/exti_test.h"

#include "base/text.h"

static void starts_with_compares_the_whole_prefix(void **state)
{
    (void)state;
    assert_true(exti__starts_with("libz.so", "lib"));
    assert_true(exti__starts_with("lib", "lib"));
    assert_true(exti__starts_with("lib", ""));
    assert_true(exti__starts_with("", ""));
    assert_false(exti__starts_with("li", "lib"));
    assert_false(exti__starts_with("", "lib"));
    assert_false(exti__starts_with("Libz.so", "lib"));
    assert_false(exti__starts_with("xlib", "lib"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(starts_with_compares_the_whole_prefix),
    };

    return cmocka_run_group_tests_name("base/text", tests, NULL, NULL);
}
