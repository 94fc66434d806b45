#include "tests/unit/elf/edit/elf_toy_plan.h"

static void origin_with_a_dollar_is_refused(void **state)
{
    static const struct exti_rewrite_opts opts = {OPTS, .origin = "/a$b"};
    struct fixture *f = *state;

    new_toy(f);
    toy_put(&f->toy, tag_at(&f->toy, DT_NEEDED) + 8, 8, TOY_PATH);
    assert_refused(f, &opts, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET, "/a$b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        plan_test(origin_with_a_dollar_is_refused),
    };

    return cmocka_run_group_tests_name("elf/elf_origin", tests, NULL, NULL);
}
