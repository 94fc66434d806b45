#include "tests/support/exti_test.h"

#include <string.h>
#include <unistd.h>

#include "base/os/fs_boot.h"

static void boot_is_named_by_the_kernels_boot_id(void **state)
{
    struct test *t = *state;
    char id[64] = "x", small[8] = "as was", *want;

    assert_int_equal(exti__fs_boot(id, sizeof id), 0);
    if (access("/proc/sys/kernel/random/boot_id", R_OK) != 0) {
        assert_string_equal(id, "");
        return;
    }
    want = test_read(t, "/proc/sys/kernel/random/boot_id", NULL);
    want[strcspn(want, "\n")] = 0;
    assert_string_equal(id, want);
    assert_int_equal(strlen(id), 36);
    assert_int_equal(exti__fs_boot(small, sizeof small), EXTI_E_ARG);
    assert_string_equal(small, "as was");
    assert_int_equal(exti__fs_boot(id, 0), EXTI_E_ARG);
    assert_int_equal(exti__fs_boot(id, 36), EXTI_E_ARG);
    assert_int_equal(exti__fs_boot(id, 37), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(boot_is_named_by_the_kernels_boot_id),
    };

    return cmocka_run_group_tests_name("base/os/fs_boot", tests, NULL, NULL);
}
