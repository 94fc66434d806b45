#include "tests/support/exti_test.h"

#include "loader/image/machines.h"

static void lists_meet_only_in_a_whole_machine_name(void **state)
{
    (void)state;
    assert_true(exti__machines_meet("arm64", "x86_64,arm64"));
    assert_true(exti__machines_meet("x86_64,arm64", "x86_64"));
    assert_false(exti__machines_meet("arm64", "x86_64,arm64e"));
    assert_false(exti__machines_meet("x86", "x86_64"));
}

static void a_universal_files_list_names_each_slice(void **state)
{
    struct exti_image slices[] = {{.info.machine = "x86_64"}, {.info.machine = "arm64"}};
    struct exti_image im = {.info = {.machine = "x86_64", .slice_count = 2}, .slices = slices};
    char list[EXTI_MACHINES_MAX];

    (void)state;
    exti__machines_of(&im, list);
    assert_string_equal(list, "x86_64,arm64");
    im.info.slice_count = 0;
    exti__machines_of(&im, list);
    assert_string_equal(list, "x86_64");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_meet_only_in_a_whole_machine_name),
        cmocka_unit_test(a_universal_files_list_names_each_slice),
    };

    return cmocka_run_group_tests_name("image/machines", tests, NULL, NULL);
}
