#include "tests/unit/elf/edit/elf_toy_plan.h"

#include "elf/edit/elf_strings.h"

static void string_table_stays_below_4_gib(void **state)
{
    struct fixture *f = *state;
    struct elf_file file = {.strtab.s.n = UINT32_MAX - 2};
    struct elf_strings s = {.f = &file, .added = exti__buf(64)};
    uint64_t off = 0;
    int rc;

    assert_ok(exti__elf_strings_put(&s, EXTI_NO_OFFSET, "ab", false, &off, &f->err), &f->err);
    assert_true(off == UINT32_MAX - 2);
    rc = exti__elf_strings_put(&s, EXTI_NO_OFFSET, "cd", false, &off, &f->err);
    exti__elf_strings_free(&s);
    assert_exti(rc, EXTI_E_NOSPACE, &f->err, EXTI_NO_OFFSET);
    assert_says(&f->err, "DT_STRTAB: would grow past 4 GiB");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        plan_test(string_table_stays_below_4_gib),
    };

    return cmocka_run_group_tests_name("elf/elf_strings", tests, NULL, NULL);
}
