#include "tests/support/exti_test.h"

#include <string.h>

#include "loader/base/mem.h"
#include "macho/macho_priv.h"
#include "tests/unit/macho_toy.h"

struct fixture {
    struct macho_toy toy;
    struct macho_file file;
    struct exti_error err;
};

static int setup(void **state)
{
    static struct fixture f;

    f = (struct fixture){0};
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    exti__mem_fail_after(-1);
    exti__macho_close(&f->file);
    return 0;
}

#define read_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static int open_toy(struct fixture *f)
{
    exti__macho_close(&f->file);
    f->err = (struct exti_error){0};
    return exti__macho_open(exti__span(f->toy.b, f->toy.n), &f->file, &f->err);
}

static void every_kind_of_toy_is_read(void **state)
{
    struct fixture *f = *state;
    const struct macho_file *m = &f->file;

    for (int i = 0; i < 16; i++) {
        struct macho_toy_opts o = {.arm = i & 1, .chained = i & 2, .bundle = i & 4, .naked = i & 8};

        macho_toy_make(&f->toy, o);
        assert_ok(open_toy(f), &f->err);
        assert_int_equal(m->cputype, o.arm ? CPU_TYPE_ARM64 : CPU_TYPE_X86_64);
        assert_int_equal(m->filetype, o.bundle ? MH_BUNDLE : MH_DYLIB);
        assert_int_equal(m->page, f->toy.page);
        if (o.bundle)
            assert_null(m->id);
        else
            assert_string_equal(m->id, MTOY_ID);
        assert_int_equal(m->dylib_count, 3);
        assert_string_equal(m->dylibs[0].name, MTOY_SYSTEM);
        assert_string_equal(m->dylibs[1].name, MTOY_WEAK_LIB);
        assert_string_equal(m->dylibs[2].name, MTOY_REEXPORT);
        assert_int_equal(m->dylibs[0].timestamp, 2);
        assert_int_equal(m->dylibs[0].current_version, 0x10203);
        assert_int_equal(m->dylibs[0].compatibility_version, 0x10000);
        assert_int_equal(m->rpath_count, 1);
        assert_string_equal(m->rpaths[0], MTOY_RPATH);
        assert_int_equal(m->uuid[15], 15);
        assert_int_equal(m->platform, PLATFORM_MACOS);
        assert_int_equal(m->minos, 0x000b0000);
        assert_int_equal(m->sdk, 0x000d0300);
        assert_int_equal(m->segment_count, 3);
        assert_int_equal(m->section_count, 5);
        assert_string_equal(m->text->name, "__TEXT");
        assert_string_equal(m->sections[4].name, "__bss");
        assert_string_equal(m->sections[4].segment, "__DATA");
        assert_int_equal(m->linkedit->fileoff, f->toy.linkedit);
        assert_int_equal(m->room_end, f->toy.text);
        assert_true(m->room_end - m->commands_end >= 64);
        assert_int_equal(m->pieces[MACHO_SYMBOLS].s.base, f->toy.symbols);
        assert_int_equal(m->pieces[MACHO_SYMBOLS].s.n, MTOY_SYMBOLS * NLIST_64_SIZE);
        assert_int_equal(m->pieces[MACHO_STRINGS].s.n, f->toy.strings_n);
        assert_int_equal(m->pieces[MACHO_CHAINED_FIXUPS].present, o.chained);
        assert_int_equal(m->pieces[MACHO_BIND].present, !o.chained);
        assert_int_equal(m->pieces[MACHO_SIGNATURE].present, !o.naked);
        assert_true(m->pieces[MACHO_DATA_IN_CODE].present);
        assert_int_equal(m->pieces[MACHO_DATA_IN_CODE].s.n, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        read_test(every_kind_of_toy_is_read),
    };

    return cmocka_run_group_tests_name("macho/macho_read", tests, NULL, NULL);
}
