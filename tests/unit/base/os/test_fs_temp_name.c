#include "tests/support/exti_test.h"

#include "base/mem.h"
#include "base/os/fs_temp_name.h"

static const uint8_t bytes[EXTI_TEMP_RANDOM] = {0x00, 0x01, 0xab, [15] = 0xff};
#define HEX "0001ab000000000000000000000000ff"

static void temporary_file_lies_beside_its_target(void **state)
{
    static const char *const cases[][2] = {
        {"/a/b/name", "/a/b/.exti-" HEX}, {"name", ".exti-" HEX}, {"/name", "/.exti-" HEX}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char *temp = exti__fs_temp_path(cases[i][0], bytes);

        assert_string_equal(temp, cases[i][1]);
        exti__free(temp);
    }
    exti__mem_fail_after(0);
    assert_null(exti__fs_temp_path("name", bytes));
}

static void only_whole_names_are_temporary(void **state)
{
    (void)state;
    assert_true(exti__fs_is_temporary(".exti-" HEX));
    assert_false(exti__fs_is_temporary(".exti-" HEX "0"));
    assert_false(exti__fs_is_temporary(".exti-0001AB000000000000000000000000FF"));
    assert_false(exti__fs_is_temporary(".exti-00"));
    assert_false(exti__fs_is_temporary("exti-" HEX));
    assert_false(exti__fs_is_temporary(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(temporary_file_lies_beside_its_target),
        cmocka_unit_test(only_whole_names_are_temporary),
    };

    return cmocka_run_group_tests_name("base/os/fs_temp_name", tests, NULL, NULL);
}
