#include "tests/support/exti_test.h"

#include "loader/resolve/stable_abi_name.h"

static void debug_and_free_threaded_builds_have_names_of_their_own(void **state)
{
    const char *own = exti__stable_abi_name_for("/x/python313t_d.dll", NULL);

    (void)state;
    assert_string_equal(own, "python3t_d.dll");
    assert_true(exti__is_stable_abi_name("PYTHON3T_D", own));
    assert_true(exti__is_stable_abi_name("PYTHON3", own));
    assert_false(exti__is_stable_abi_name("python3_d.dll", own));
    assert_string_equal(exti__stable_abi_name_for("/x/libfoo.dll", "python39_d.dll"),
                        "python3_d.dll");
    assert_null(exti__stable_abi_name_for("/x/libfoo.dll", NULL));
}

static void other_versions_of_python_have_no_stable_abi_name(void **state)
{
    (void)state;
    assert_string_equal(exti__stable_abi_name("Python3.DLL"), "python3.dll");
    assert_null(exti__stable_abi_name("python4.dll"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(debug_and_free_threaded_builds_have_names_of_their_own),
        cmocka_unit_test(other_versions_of_python_have_no_stable_abi_name),
    };

    return cmocka_run_group_tests_name("resolve/stable_abi_name", tests, NULL, NULL);
}
