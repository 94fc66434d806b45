#include "macho/read/macho_arch.h"
#include "macho/read/macho_segments.h"
#include "tests/unit/macho/macho_read.h"

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

static void odd_but_legal_files_are_read(void **state)
{
    struct fixture *f = *state;
    struct macho_toy *t = &f->toy;
    size_t at;

    macho_toy_make(t, (struct macho_toy_opts){0});
    mtoy_put(t, mtoy_find(t, LC_SOURCE_VERSION, 0), 4, 0x77); /* a command of the future */
    assert_ok(open_toy(f), &f->err);

    macho_toy_make(t, (struct macho_toy_opts){0}); /* an empty piece, at any offset */
    mtoy_put(t, mtoy_find(t, LC_DATA_IN_CODE, 0) + 8, 4, UINT32_MAX);
    assert_ok(open_toy(f), &f->err);
    assert_int_equal(f->file.pieces[MACHO_DATA_IN_CODE].s.n, 0);

    macho_toy_make(t, (struct macho_toy_opts){.bundle = true});
    mtoy_put(t, 12, 4, MH_EXECUTE);
    assert_ok(open_toy(f), &f->err);
    assert_int_equal(f->file.filetype, MH_EXECUTE);

    macho_toy_make(t, (struct macho_toy_opts){0});
    at = mtoy_find(t, LC_UUID, 0);
    mtoy_put(t, at, 4, LC_ENCRYPTION_INFO_64); /* as the linker leaves it: not encrypted */
    mtoy_put(t, at + 16, 4, 0);
    assert_ok(open_toy(f), &f->err);
    assert_null(f->file.uuid);

    macho_toy_make(t, (struct macho_toy_opts){.arm = true});
    mtoy_put(t, 8, 4, 0x80000000 | CPU_SUBTYPE_ARM64E);
    assert_ok(open_toy(f), &f->err);
    assert_string_equal(exti__macho_arch(f->file.cputype, f->file.cpusubtype), "arm64e");

    macho_toy_make(t, (struct macho_toy_opts){0});
    at = mtoy_find(t, LC_SEGMENT_64, 0) + 72;
    mtoy_put(t, at + S_SIZE, 8, 0); /* no sections: the room extends to the end of __TEXT */
    mtoy_put(t, at + S_OFFSET, 4, 0);
    assert_ok(open_toy(f), &f->err);
    assert_int_equal(f->file.room_end, t->page);
}

static void versions_come_from_either_kind_of_command(void **state)
{
    static const struct {
        uint32_t cmd, platform;
    } table[] = {{LC_VERSION_MIN_MACOSX, PLATFORM_MACOS},
                 {LC_VERSION_MIN_IPHONEOS, PLATFORM_IOS},
                 {LC_VERSION_MIN_TVOS, PLATFORM_TVOS},
                 {LC_VERSION_MIN_WATCHOS, PLATFORM_WATCHOS}};
    struct fixture *f = *state;
    struct macho_toy *t = &f->toy;

    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        size_t at;

        macho_toy_make(t, (struct macho_toy_opts){0});
        mtoy_put(t, mtoy_find(t, LC_BUILD_VERSION, 0), 4, 0x77);
        at = mtoy_find(t, LC_SOURCE_VERSION, 0);
        mtoy_put(t, at, 4, table[i].cmd);
        mtoy_put(t, at + 8, 4, 0x000a0900);
        mtoy_put(t, at + 12, 4, 0x000a0f00);
        assert_ok(open_toy(f), &f->err);
        assert_int_equal(f->file.platform, table[i].platform);
        assert_int_equal(f->file.minos, 0x000a0900);
        assert_int_equal(f->file.sdk, 0x000a0f00);
    }

    /* For macOS and iOS, in either order. */
    for (int macos_last = 0; macos_last < 2; macos_last++) {
        size_t build;

        macho_toy_make(t, (struct macho_toy_opts){0});
        build = mtoy_find(t, LC_BUILD_VERSION, 0);
        mtoy_put(t, build + 8, 4, macos_last ? PLATFORM_IOS : PLATFORM_MACOS);
        mtoy_put(t, mtoy_find(t, LC_SOURCE_VERSION, 0), 4,
                 macos_last ? LC_VERSION_MIN_MACOSX : LC_VERSION_MIN_IPHONEOS);
        assert_ok(open_toy(f), &f->err);
        assert_int_equal(f->file.platform, PLATFORM_MACOS);
        assert_int_equal(f->file.minos, macos_last ? 0 : 0x000b0000);
    }
}

static void addresses_are_found_in_the_contents_of_segments(void **state)
{
    struct fixture *f = *state;
    struct macho_toy *t = &f->toy;
    struct exti_span s;
    uint64_t data;

    macho_toy_make(t, (struct macho_toy_opts){.arm = true});
    assert_ok(open_toy(f), &f->err);
    data = MTOY_BASE + t->data;
    assert_ok(exti__macho_at(&f->file, data + 48, 8, "value", &s, &f->err), &f->err);
    assert_int_equal(s.base, t->data + 48);
    assert_int_equal(s.p[0], 42);
    assert_ok(exti__macho_at(&f->file, data, t->page, "all", &s, &f->err), &f->err);
    assert_exti(exti__macho_at(&f->file, data, t->page + 1, "more", &s, &f->err), EXTI_E_FORMAT,
                &f->err, EXTI_NO_OFFSET);
    assert_says(&f->err, "more: 16385 bytes at address 0x14000 are not in any segment's contents");
    assert_int_equal(exti__macho_at(&f->file, MTOY_BASE - 1, 1, "", &s, NULL), EXTI_E_FORMAT);
    assert_int_equal(exti__macho_at(&f->file, UINT64_MAX, UINT64_MAX, "", &s, NULL), EXTI_E_FORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        read_test(every_kind_of_toy_is_read),
        read_test(odd_but_legal_files_are_read),
        read_test(versions_come_from_either_kind_of_command),
        read_test(addresses_are_found_in_the_contents_of_segments),
    };

    return cmocka_run_group_tests_name("macho/macho_read", tests, NULL, NULL);
}
