/* Which names are the API's in a context. */
#include "tests/support/exti_test.h"

#include "loader/store/manifest_api.h"

static void debug_and_free_threaded_builds_have_a_python3_dll_of_their_own(void **state)
{
    struct exti_manifest m = {.api = {.source = (char *)"/x/python313t_d.dll"}};

    (void)state;
    assert_false(exti__manifest_is_stable_abi(&m, "python3.dll"));
    m.target.format = EXTI_FORMAT_PE;
    assert_true(exti__manifest_is_stable_abi(&m, "python3t_d.dll"));
    assert_true(exti__manifest_is_stable_abi(&m, "PYTHON3"));
    assert_false(exti__manifest_is_stable_abi(&m, "python3_d.dll"));
    m.api.source = (char *)"/x/libfoo.dll";
    assert_false(exti__manifest_is_stable_abi(&m, "python3.dll"));
    m.api.source_name = (char *)"python39_d.dll";
    assert_true(exti__manifest_is_stable_abi(&m, "python3_d.dll"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(debug_and_free_threaded_builds_have_a_python3_dll_of_their_own),
    };

    return cmocka_run_group_tests_name("store/manifest_api", tests, NULL, NULL);
}
