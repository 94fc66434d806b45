#include "tests/support/exti_test.h"

#include <string.h>

#include "loader/base/mem.h"
#include "macho/macho_priv.h"
#include "tests/unit/macho_toy.h"

struct fixture {
    struct macho_toy x86, arm;
    struct macho_toy_fat toy;
    struct macho_fat fat;
    struct exti_error err;
};

static int setup(void **state)
{
    static struct fixture f;

    f = (struct fixture){0};
    macho_toy_make(&f.x86, (struct macho_toy_opts){0});
    macho_toy_make(&f.arm, (struct macho_toy_opts){.arm = true});
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    exti__mem_fail_after(-1);
    exti__macho_fat_close(&f->fat);
    return 0;
}

#define fat_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static void make(struct fixture *f, bool wide)
{
    mtoy_fat_start(&f->toy, wide);
    mtoy_fat_add_toy(&f->toy, &f->x86);
    mtoy_fat_add_toy(&f->toy, &f->arm);
}

static int open_fat(struct fixture *f)
{
    exti__macho_fat_close(&f->fat);
    f->err = (struct exti_error){0};
    return exti__macho_fat_open(exti__span(f->toy.b, f->toy.n), &f->fat, &f->err);
}

static void both_widths_of_table_are_read(void **state)
{
    struct fixture *f = *state;

    for (int wide = 0; wide < 2; wide++) {
        make(f, wide);
        assert_ok(open_fat(f), &f->err);
        assert_int_equal(f->fat.wide, wide);
        assert_false(f->fat.hidden);
        assert_int_equal(f->fat.count, 2);
        assert_int_equal(f->fat.at_end, wide ? 72 : 48);
        for (size_t i = 0; i < 2; i++) {
            const struct macho_slice *s = &f->fat.slices[i];
            struct macho_file m;

            assert_int_equal(s->cputype, i ? CPU_TYPE_ARM64 : CPU_TYPE_X86_64);
            assert_int_equal(s->align, 14);
            assert_int_equal(s->s.base, s->offset);
            assert_true(exti__macho_slice_handled(s));
            assert_ok(exti__macho_open(s->s, &m, &f->err), &f->err);
            assert_int_equal(m.commands[0].s.base, s->offset + MACH_HEADER_64_SIZE);
            exti__macho_close(&m);
        }
    }
}

static void a_thin_file_is_one_slice(void **state)
{
    struct fixture *f = *state;

    assert_ok(exti__macho_fat_open(exti__span(f->arm.b, f->arm.n), &f->fat, &f->err), &f->err);
    assert_int_equal(f->fat.count, 1);
    assert_int_equal(f->fat.at_end, 0);
    assert_int_equal(f->fat.slices[0].cputype, CPU_TYPE_ARM64);
    assert_ptr_equal(f->fat.slices[0].s.p, f->arm.b);
    assert_int_equal(f->fat.slices[0].size, f->arm.n);
    assert_true(exti__macho_slice_handled(&f->fat.slices[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fat_test(both_widths_of_table_are_read),
        fat_test(a_thin_file_is_one_slice),
    };

    return cmocka_run_group_tests_name("macho/macho_fat", tests, NULL, NULL);
}
