/* The Mach-O self-check of universal files. */
#include "tests/unit/macho/macho_findings.h"

struct fat_fixture {
    struct macho_toy_fat before, after;
};

static void make_fat(struct fixture *f, struct macho_toy_fat *t)
{
    static const uint8_t other[64] = {0xce, 0xfa, 0xed, 0xfe, 7, 0, 0, 0, 3};

    mtoy_fat_start(t, false);
    mtoy_fat_add_toy(t, &f->before);
    mtoy_fat_add(t, CPU_TYPE_I386, 3, other, sizeof other);
}

static void check_fat(struct fixture *f, const struct fat_fixture *fat, const char *says)
{
    assert_ok(check_spans(f, exti__span(fat->before.b, fat->before.n),
                          exti__span(fat->after.b, fat->after.n), NULL),
              &f->err);
    if (!says && f->findings)
        fail_msg("finding: %s", f->first.message);
    if (says)
        assert_int_equal(f->findings, 1);
    if (says)
        assert_says(&f->first, says);
}

/* Moves the last slice; its entry allows any place. */
static void move_last(struct macho_toy_fat *t, size_t by)
{
    const size_t entry = mtoy_fat_entry(t, t->count - 1), at = t->n - 64;

    memmove(t->b + at + by, t->b + at, 64);
    memset(t->b + at, 0, by);
    t->n += by;
    mtoy_fat_put(t, entry + 8, 4, at + by);
    mtoy_fat_put(t, entry + 16, 4, 0);
}

static void faults_of_a_universal_file_are_found(void **state)
{
    struct test *t = *state;
    struct fixture *f = test_alloc(t, sizeof *f);
    struct fat_fixture *fat = test_alloc(t, sizeof *fat);

    make_pair(f, &opcodes);
    make_fat(f, &fat->before);
    make_fat(f, &fat->after);
    check_fat(f, fat, NULL);

    fat->after.b[fat->after.n - 1] = 1;
    check_fat(f, fat, "the slice for i386 is not rewritten, but differs");
    make_fat(f, &fat->after);
    fat->after.b[0x100] = 1;
    check_fat(f, fat, "byte 0x01 between the slices");
    make_fat(f, &fat->after);
    fat->after.b[fat->after.n++] = 1;
    check_fat(f, fat, "byte 0x01 between the slices");
    make_fat(f, &fat->after);
    fat->after.b[0x4000 + f->before.text] ^= 1;
    check_fat(f, fat, "x86-64: __text: byte");
    assert_int_equal(f->first.offset, 0x4000 + f->before.text);
    make_fat(f, &fat->after);
    mtoy_fat_put(&fat->after, 4, 4, 1);
    check_fat(f, fat, "universal file: 1 slices, not 2");
    make_fat(f, &fat->after);
    mtoy_fat_put(&fat->after, mtoy_fat_entry(&fat->after, 1), 4, CPU_TYPE_ARM);
    fat->after.b[fat->after.n - 60] = CPU_TYPE_ARM; /* in the slice's own header */
    check_fat(f, fat, "universal file: slice 1 is for ");
    make_fat(f, &fat->after);
    move_last(&fat->after, 16);
    check_fat(f, fat, "its offset is not a multiple of the page size");
    memcpy(fat->after.b, f->before.b, f->before.n);
    fat->after.n = f->before.n;
    check_fat(f, fat, "universal file: 1 slices, not 2");
    fat->after.n = 3;
    check_fat(f, fat, "not a sound Mach-O file");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(faults_of_a_universal_file_are_found),
    };

    return cmocka_run_group_tests_name("macho/check/macho_check_fat", tests, NULL, NULL);
}
