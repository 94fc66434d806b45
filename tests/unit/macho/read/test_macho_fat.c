#include "tests/support/exti_test.h"

#include <string.h>

#include "base/mem.h"
#include "macho/read/macho_fat.h"
#include "tests/unit/macho/macho_toy.h"

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

static void make_universal(struct fixture *f, bool wide)
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
        make_universal(f, wide);
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

/* One field of the table or of a slice's own header. */
struct corruption {
    const char *what;
    size_t at, width;
    uint64_t value;
    int code;
    uint64_t offset;
};

static void corrupt_tables_are_reported(void **state)
{
    struct fixture *f = *state;

    for (int wide = 0; wide < 2; wide++) {
        make_universal(f, wide);
        const size_t w = wide ? 8 : 4, a = mtoy_fat_entry(&f->toy, 0),
                     b = mtoy_fat_entry(&f->toy, 1), x = 0x4000, y = 0x8000;
        const struct corruption table[] = {
            {"nfat_arch is 0, not from 1 to 16", 4, 4, 0, EXTI_E_FORMAT, 4},
            {"nfat_arch is 17", 4, 4, 17, EXTI_E_FORMAT, 4},
            {"slice 0 unknown: its own header says x86-64", a, 4, 0x77, EXTI_E_FORMAT, x + 4},
            {"slice 0 arm64: its own header says x86-64", a, 4, CPU_TYPE_ARM64, EXTI_E_FORMAT,
             x + 4},
            {"slice 0 x86-64h: its own header says", a + 4, 4, CPU_SUBTYPE_X86_64_H, EXTI_E_FORMAT,
             x + 4},
            {"slice 1 arm64e: its own header says arm64 ", b + 4, 4, CPU_SUBTYPE_ARM64E,
             EXTI_E_FORMAT, y + 4},
            {"slice 0 x86-64: starts within the table", a + 8, w, 0, EXTI_E_FORMAT, a + 8},
            {"slice 1 arm64: ends past the file's end", b + 8, w, UINT32_MAX, EXTI_E_FORMAT,
             b + 8 + w},
            {"slice 1 arm64: ends past the file's end", b + 8 + w, w, UINT32_MAX, EXTI_E_FORMAT,
             b + 8 + w},
            {"slice 0 x86-64: its offset is not a multiple of 2 to the power of 0xf", a + 8 + 2 * w,
             4, 15, EXTI_E_FORMAT, a + 8 + 2 * w},
            {"slice 0 x86-64: its offset is not a multiple of 2", a + 8 + 2 * w, 4, UINT32_MAX,
             EXTI_E_FORMAT, a + 8 + 2 * w},
            {"slice 1 arm64: shares bytes with slice 0x0", a + 8 + w, w, 0x4001, EXTI_E_FORMAT,
             b + 8},
            {"slice 1 arm64: shares bytes with slice 0x0", b + 8, w, x, EXTI_E_FORMAT, b + 8},
            {"slice 0 x86-64: is not a Mach-O file", a + 8 + w, w, 0, EXTI_E_FORMAT, x},
            {"slice 0 x86-64: is not a Mach-O file", x, 4, 0x12345678, EXTI_E_FORMAT, x},
        };

        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
            int rc;

            make_universal(f, wide);
            mtoy_fat_put(&f->toy, table[i].at, table[i].width, table[i].value);
            rc = open_fat(f);
            if (!rc || f->err.offset != table[i].offset)
                print_error("%s\n", rc ? f->err.message : table[i].what);
            assert_exti(rc, table[i].code, &f->err, table[i].offset);
            assert_says(&f->err, table[i].what);
            assert_null(f->fat.slices);
        }
    }
}

static void slices_must_lie_on_pages(void **state)
{
    struct fixture *f = *state;
    size_t b;

    make_universal(f, false);
    b = mtoy_fat_entry(&f->toy, 1);
    memmove(f->toy.b + 0x9000, f->toy.b + 0x8000, f->arm.n);
    f->toy.n += 0x1000;
    mtoy_fat_put(&f->toy, b + 8, 4, 0x9000);
    mtoy_fat_put(&f->toy, b + 16, 4, 12);
    assert_exti(open_fat(f), EXTI_E_FORMAT, &f->err, b + 8);
    assert_says(&f->err, "slice 1 arm64: its offset is not a multiple of the page size 0x4000");

    mtoy_fat_start(&f->toy, false); /* x86-64 needs 4 KiB only, which llvm-lipo uses */
    mtoy_fat_add_toy(&f->toy, &f->x86);
    memmove(f->toy.b + 0x5000, f->toy.b + 0x4000, f->x86.n);
    f->toy.n += 0x1000;
    mtoy_fat_put(&f->toy, 16, 4, 0x5000);
    mtoy_fat_put(&f->toy, 24, 4, 12);
    assert_ok(open_fat(f), &f->err);
}

static void tables_cut_short_are_reported(void **state)
{
    struct fixture *f = *state;

    for (int wide = 0; wide < 2; wide++) {
        make_universal(f, wide);
        for (f->toy.n = 0; f->toy.n < (wide ? 72 : 48); f->toy.n++)
            assert_exti(open_fat(f), EXTI_E_FORMAT, &f->err, ANY_OFFSET);
        make_universal(f, wide);
        f->toy.n--;
        assert_exti(open_fat(f), EXTI_E_FORMAT, &f->err,
                    mtoy_fat_entry(&f->toy, 1) + (wide ? 16 : 12));
    }
    f->x86.n = 11;
    assert_exti(exti__macho_fat_open(exti__span(f->x86.b, f->x86.n), &f->fat, &f->err),
                EXTI_E_FORMAT, &f->err, 8);
    assert_says(&f->err, "Mach-O header: ends early");
}

static void duplicate_architectures_are_refused(void **state)
{
    struct fixture *f = *state;

    mtoy_fat_start(&f->toy, false);
    mtoy_fat_add_toy(&f->toy, &f->x86);
    mtoy_fat_add_toy(&f->toy, &f->x86);
    assert_exti(open_fat(f), EXTI_E_FORMAT, &f->err, mtoy_fat_entry(&f->toy, 1));
    assert_says(&f->err, "slice 1 x86-64: the same architecture as slice 0x0");
}

/* lipo -hideARM64: nfat_arch does not count the last entry. */
static void a_hidden_slice_is_found(void **state)
{
    struct fixture *f = *state;

    make_universal(f, false);
    mtoy_fat_put(&f->toy, 4, 4, 1);
    assert_ok(open_fat(f), &f->err);
    assert_true(f->fat.hidden);
    assert_int_equal(f->fat.count, 2);
    assert_int_equal(f->fat.at_end, 48);
    assert_int_equal(f->fat.slices[1].cputype, CPU_TYPE_ARM64);

    make_universal(f, true); /* dyld does not look after a wide table */
    mtoy_fat_put(&f->toy, 4, 4, 1);
    assert_ok(open_fat(f), &f->err);
    assert_false(f->fat.hidden);
    assert_int_equal(f->fat.count, 1);

    make_universal(f, false); /* nor for other architectures */
    mtoy_fat_put(&f->toy, 4, 4, 1);
    mtoy_fat_put(&f->toy, mtoy_fat_entry(&f->toy, 1), 4, CPU_TYPE_ARM);
    assert_ok(open_fat(f), &f->err);
    assert_int_equal(f->fat.count, 1);
}

/* Slices that are copied unchanged. */
static void other_architectures_are_slices_too(void **state)
{
    static const uint8_t i386[] = {0xce, 0xfa, 0xed, 0xfe, 7, 0, 0, 0, 3, 0, 0, 0},
                         ppc[] = {0xfe, 0xed, 0xfa, 0xce, 0, 0, 0, 18, 0, 0, 0, 0},
                         ppc64[] = {0xfe, 0xed, 0xfa, 0xcf, 1, 0, 0, 18, 0, 0, 0, 0};
    struct fixture *f = *state;

    mtoy_fat_start(&f->toy, false);
    mtoy_fat_add(&f->toy, CPU_TYPE_I386, 3, i386, sizeof i386);
    mtoy_fat_add(&f->toy, CPU_TYPE_POWERPC, 0, ppc, sizeof ppc);
    mtoy_fat_add(&f->toy, CPU_TYPE_POWERPC64, 0, ppc64, sizeof ppc64);
    mtoy_fat_add_toy(&f->toy, &f->arm);
    assert_ok(open_fat(f), &f->err);
    assert_int_equal(f->fat.count, 4);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(exti__macho_slice_handled(&f->fat.slices[i]), i == 3);
}

static void a_universal_static_library_is_named_as_such(void **state)
{
    struct fixture *f = *state;

    mtoy_fat_start(&f->toy, false);
    mtoy_fat_add(&f->toy, CPU_TYPE_X86_64, 3, "!<arch>\nabcd", 12);
    assert_exti(open_fat(f), EXTI_E_UNSUPPORTED, &f->err, 0x4000);
    assert_says(&f->err, "slice 0 x86-64: is a static library");
}

/* Linkers of arm64e set the ABI version in the slice or the table, but not always in both. */
static void the_high_byte_of_a_subtype_is_ignored(void **state)
{
    struct fixture *f = *state;

    mtoy_put(&f->arm, 8, 4, 0x80000000 | CPU_SUBTYPE_ARM64E);
    mtoy_fat_start(&f->toy, false);
    mtoy_fat_add(&f->toy, CPU_TYPE_ARM64, CPU_SUBTYPE_ARM64E, f->arm.b, f->arm.n);
    assert_ok(open_fat(f), &f->err);
    assert_true(exti__macho_slice_handled(&f->fat.slices[0]));
}

static void a_failed_allocation_is_reported(void **state)
{
    struct fixture *f = *state;

    make_universal(f, false);
    exti__mem_fail_after(0);
    assert_exti(open_fat(f), EXTI_E_NOMEM, &f->err, ANY_OFFSET);
}

static void the_slice_for_a_machine_is_chosen(void **state)
{
    enum { X86 = CPU_SUBTYPE_X86_64_ALL, H = CPU_SUBTYPE_X86_64_H, V8 = 1, E = CPU_SUBTYPE_ARM64E };
    static const struct {
        uint32_t cputype, cpusubtype, types[2], subtypes[2];
        int takes; /* -1: none */
    } cases[] = {
        {CPU_TYPE_X86_64, X86, {CPU_TYPE_X86_64, CPU_TYPE_ARM64}, {X86, 0}, 0},
        {CPU_TYPE_X86_64, H, {CPU_TYPE_ARM64, CPU_TYPE_X86_64}, {0, X86}, 1},
        {CPU_TYPE_X86_64, X86, {CPU_TYPE_X86_64, CPU_TYPE_ARM64}, {H, 0}, 0},
        {CPU_TYPE_X86_64, H, {CPU_TYPE_X86_64, CPU_TYPE_X86_64}, {X86, H}, 1},
        {CPU_TYPE_X86_64, X86, {CPU_TYPE_X86_64, CPU_TYPE_X86_64}, {H, X86}, 1},
        {CPU_TYPE_X86_64, X86, {CPU_TYPE_ARM64, CPU_TYPE_I386}, {0, X86}, -1},
        {CPU_TYPE_ARM64, V8, {CPU_TYPE_X86_64, CPU_TYPE_ARM64}, {V8, 0}, 1},
        {CPU_TYPE_ARM64, 0, {CPU_TYPE_ARM64, CPU_TYPE_ARM64}, {E, V8}, 1},
        {CPU_TYPE_ARM64, E, {CPU_TYPE_ARM64, CPU_TYPE_X86_64}, {0, X86}, -1},
        {CPU_TYPE_ARM64, 0x80000000u | E, {CPU_TYPE_ARM64, CPU_TYPE_ARM64}, {0, E}, 1},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct macho_slice slices[2] = {{.cputype = cases[i].types[0]},
                                        {.cputype = cases[i].types[1]}};
        const struct macho_fat fat = {.slices = slices, .count = 2};
        const struct macho_slice *s;

        slices[0].cpusubtype = cases[i].subtypes[0];
        slices[1].cpusubtype = cases[i].subtypes[1];
        s = exti__macho_slice_for(&fat, cases[i].cputype, cases[i].cpusubtype);
        assert_ptr_equal(s, cases[i].takes < 0 ? NULL : &slices[cases[i].takes]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fat_test(both_widths_of_table_are_read),
        fat_test(a_thin_file_is_one_slice),
        fat_test(corrupt_tables_are_reported),
        fat_test(slices_must_lie_on_pages),
        fat_test(tables_cut_short_are_reported),
        fat_test(duplicate_architectures_are_refused),
        fat_test(a_hidden_slice_is_found),
        fat_test(other_architectures_are_slices_too),
        fat_test(a_universal_static_library_is_named_as_such),
        fat_test(the_high_byte_of_a_subtype_is_ignored),
        fat_test(a_failed_allocation_is_reported),
        fat_test(the_slice_for_a_machine_is_chosen),
    };

    return cmocka_run_group_tests_name("macho/macho_fat", tests, NULL, NULL);
}
