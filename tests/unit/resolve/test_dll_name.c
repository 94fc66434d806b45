#include "tests/support/exti_test.h"

#include "loader/resolve/dll_name.h"

static void case_and_a_missing_dll_suffix_do_not_matter(void **state)
{
    (void)state;
    assert_true(exti__same_dll("Python311", "python311.DLL"));
    assert_false(exti__same_dll("python31", "python311"));
    assert_false(exti__same_dll("a.pyd", "a"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_and_a_missing_dll_suffix_do_not_matter),
    };

    return cmocka_run_group_tests_name("resolve/dll_name", tests, NULL, NULL);
}
