#include "tests/support/exti_test.h"

#include <string.h>

#include "base/mem.h"
#include "macho/macho_format.h"
#include "tests/unit/macho/macho_runs.h"

struct fixture {
    struct macho_toy toy, arm;
    struct macho_toy_fat fat;
    struct exti_image image;
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
    exti__image_clear(&f->image);
    return 0;
}

#define image_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static int read_bytes(struct fixture *f, const void *p, size_t n)
{
    exti__image_clear(&f->image);
    f->err = (struct exti_error){0};
    return exti__macho_format.read(exti__span(p, n), &f->image, &f->err);
}

static int read_toy(struct fixture *f)
{
    return read_bytes(f, f->toy.b, f->toy.n);
}

static void assert_symbol(const struct exti_image *im, const char *name, uint32_t flags,
                          int32_t library)
{
    size_t found = 0;

    for (size_t i = 0; i < im->info.symbol_count; i++) {
        const struct exti_image_symbol *s = &im->symbols[i];

        if (strcmp(s->name, name) != 0 || (s->flags ^ flags) & EXTI_SYM_EXPORT ||
            s->library != library)
            continue;
        assert_int_equal(s->flags, flags);
        assert_null(s->version);
        found++;
    }
    if (found != 1)
        fail_msg("%s is there %zu times", name, found);
}

static void assert_symbols(const struct exti_image *im)
{
    assert_symbol(im, "_toy_func", EXTI_SYM_EXPORT | EXTI_SYM_FUNCTION, 0);
    assert_symbol(im, "_toy_value", EXTI_SYM_EXPORT, 0);
    assert_symbol(im, "_toy_weak", EXTI_SYM_EXPORT | EXTI_SYM_WEAK, 0);
    assert_symbol(im, "_PyFlat", 0, EXTI_BIND_FLAT);
    assert_symbol(im, "_PyOptional", EXTI_SYM_WEAK, EXTI_BIND_FLAT);
    assert_symbol(im, "_malloc", 0, 1);
    assert_symbol(im, "_toy_weak", 0, EXTI_BIND_WEAK);
    assert_int_equal(im->info.symbol_count, 7);
}

static void either_kind_of_fixups_is_described_alike(void **state)
{
    struct fixture *f = *state;
    const struct exti_image *im = &f->image;
    const struct exti_image_info *info = &im->info;

    for (int i = 0; i < 32; i++) {
        struct macho_toy_opts o = {.arm = i & 1,
                                   .chained = i & 2,
                                   .bundle = i & 4,
                                   .imports = 1 + (uint32_t)i / 8 % 3,
                                   .room = i & 8 ? 200 : 0};

        macho_toy_make(&f->toy, o);
        assert_ok(read_toy(f), &f->err);
        assert_string_equal(info->format, "Mach-O");
        assert_string_equal(info->machine, o.arm ? "arm64" : "x86-64");
        assert_int_equal(info->bits, 64);
        assert_int_equal(info->big_endian, 0);
        assert_null(info->rpath);
        assert_null(info->runpath);
        assert_string_equal(info->build_id, "000102030405060708090a0b0c0d0e0f");
        assert_int_equal(info->flags, EXTI_IMAGE_UNIQUE | (o.bundle ? EXTI_IMAGE_BUNDLE : 0));
        assert_int_equal(info->tls_size, 0);
        if (o.bundle)
            assert_null(info->id);
        else
            assert_string_equal(info->id, MTOY_ID);
        assert_int_equal(info->needed_count, 3);
        assert_string_equal(im->needed[0].name, MTOY_SYSTEM);
        assert_int_equal(im->needed[0].flags, 0);
        assert_int_equal(im->needed[1].flags, EXTI_NEED_WEAK);
        assert_int_equal(im->needed[2].flags, EXTI_NEED_REEXPORT);
        assert_int_equal(im->path_count, 1);
        assert_string_equal(im->paths[0], MTOY_RPATH);
        assert_int_equal(info->slice_count, 0);
        assert_in_range(info->header_room, o.room ? o.room : 64, (o.room ? o.room : 64) + 7);
        assert_int_equal(info->signature, EXTI_SIGNATURE_LINKER);
        assert_int_equal(info->min_os, 0x000b0000);
        assert_int_equal(info->sdk, 0x000d0300);
        assert_symbols(im);
    }
}

static void a_universal_file_is_described_slice_by_slice(void **state)
{
    static const uint8_t i386[] = {0xce, 0xfa, 0xed, 0xfe, 7, 0, 0, 0, 3, 0, 0, 0},
                         ppc64[] = {0xfe, 0xed, 0xfa, 0xcf, 1, 0, 0, 18, 0, 0, 0, 0};
    struct fixture *f = *state;
    const struct exti_image *im = &f->image;

    macho_toy_make(&f->toy, (struct macho_toy_opts){.naked = true});
    macho_toy_make(&f->arm, (struct macho_toy_opts){.arm = true, .chained = true, .room = 400});
    mtoy_fat_start(&f->fat, false);
    mtoy_fat_add(&f->fat, CPU_TYPE_I386, 3, i386, sizeof i386);
    mtoy_fat_add(&f->fat, CPU_TYPE_POWERPC64, 0, ppc64, sizeof ppc64);
    mtoy_fat_add_toy(&f->fat, &f->arm);
    mtoy_fat_add_toy(&f->fat, &f->toy);
    assert_ok(read_bytes(f, f->fat.b, f->fat.n), &f->err);
    assert_int_equal(im->info.slice_count, 4);
    assert_string_equal(im->info.machine, "arm64"); /* the first slice that can be rewritten */
    assert_symbols(im);
    assert_string_equal(im->slices[0].info.format, "Mach-O");
    assert_string_equal(im->slices[0].info.machine, "i386");
    assert_int_equal(im->slices[0].info.bits, 32);
    assert_int_equal(im->slices[0].info.big_endian, 0);
    assert_null(im->slices[0].info.id);
    assert_int_equal(im->slices[0].info.symbol_count, 0);
    assert_string_equal(im->slices[1].info.machine, "PowerPC64");
    assert_int_equal(im->slices[1].info.bits, 64);
    assert_int_equal(im->slices[1].info.big_endian, 1);
    assert_string_equal(im->slices[2].info.machine, "arm64");
    assert_string_equal(im->slices[3].info.machine, "x86-64");
    assert_int_equal(im->slices[3].info.slice_count, 0);
    assert_int_equal(im->slices[3].info.signature, EXTI_SIGNATURE_NONE);
    assert_symbols(&im->slices[2]);
    assert_symbols(&im->slices[3]);
    assert_true(im->slices[2].info.header_room > im->slices[3].info.header_room);

    mtoy_fat_start(&f->fat, false);
    mtoy_fat_add(&f->fat, CPU_TYPE_I386, 3, i386, sizeof i386);
    assert_exti(read_bytes(f, f->fat.b, f->fat.n), EXTI_E_UNSUPPORTED, &f->err, 0);
    assert_says(&f->err, "no slice is for x86-64 or arm64; the first is for i386");
}

/* A fault in any slice is reported with its offset in the whole file. */
static void a_faulty_slice_spoils_the_file(void **state)
{
    struct fixture *f = *state;

    macho_toy_make(&f->toy, (struct macho_toy_opts){0});
    macho_toy_make(&f->arm, (struct macho_toy_opts){.arm = true});
    mtoy_put(&f->arm, 12, 4, 1);
    mtoy_fat_start(&f->fat, true);
    mtoy_fat_add_toy(&f->fat, &f->toy);
    mtoy_fat_add_toy(&f->fat, &f->arm);
    assert_exti(read_bytes(f, f->fat.b, f->fat.n), EXTI_E_UNSUPPORTED, &f->err, 0x8000 + 12);
    assert_says(&f->err, "an object file");
    assert_int_equal(f->image.info.slice_count, 0);
    assert_null(f->image.symbols);
}

/* The flags and section names that make dyld keep an image. */
static void images_that_are_never_unloaded_are_recognised(void **state)
{
    static const struct {
        const char *name, *segment;
        uint32_t type;
        bool in_dylib, in_bundle;
    } table[] = {
        {"__data", "__DATA", 0, false, false},
        {"__thread_vars", "__DATA", S_THREAD_LOCAL_VARIABLES, true, true},
        {"__dof_x", "__TEXT", S_DTRACE_DOF, true, true},
        {"__objc_imageinfo", "__DATA", 0, true, false},
        {"__objc_imageinfo", "__DATA_CONST", 0, true, false},
        {"__swift5_types", "__TEXT", 0, true, true},
        {"__swift5_types", "__DATA", 0, false, false},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(table) * 2; i++) {
        bool bundle = i & 1, kept = bundle ? table[i / 2].in_bundle : table[i / 2].in_dylib;
        size_t section;

        macho_toy_make(&f->toy, (struct macho_toy_opts){.bundle = bundle});
        section = mtoy_find(&f->toy, LC_SEGMENT_64, 1) + 72 + 2 * 80;
        memset(f->toy.b + section, 0, 32);
        memcpy(f->toy.b + section, table[i / 2].name, strlen(table[i / 2].name));
        memcpy(f->toy.b + section + 16, table[i / 2].segment, strlen(table[i / 2].segment));
        mtoy_put(&f->toy, section + 64, 4, table[i / 2].type);
        assert_ok(read_toy(f), &f->err);
        assert_int_equal(f->image.info.flags & EXTI_IMAGE_NODELETE, kept ? EXTI_IMAGE_NODELETE : 0);
    }
}

static void withheld_constructors_are_recognised(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < 4; i++) {
        runs_make(&f->toy, (struct macho_toy_opts){0});
        assert_ok(read_toy(f), &f->err);
        assert_int_equal(f->image.info.flags & EXTI_IMAGE_WITHHELD, 0);
        if (i < 3)
            mtoy_put(&f->toy, runs_flags(&f->toy, i) + 2, 1, i == 0 ? 0x89 : i == 1 ? 0x96 : 0x8a);
        if (i < 3)
            mtoy_put(&f->toy, runs_flags(&f->toy, i), 1, S_REGULAR);
        else
            mtoy_put(&f->toy, runs_routines(&f->toy), 4, 0x6578741a);
        assert_ok(read_toy(f), &f->err);
        assert_int_equal(f->image.info.flags & EXTI_IMAGE_WITHHELD, EXTI_IMAGE_WITHHELD);
    }
}

static void thread_local_storage_is_summed(void **state)
{
    struct fixture *f = *state;
    size_t data;

    macho_toy_make(&f->toy, (struct macho_toy_opts){0});
    data = mtoy_find(&f->toy, LC_SEGMENT_64, 1) + 72 + 2 * 80;
    mtoy_put(&f->toy, data + 64, 4, S_THREAD_LOCAL_REGULAR);
    mtoy_put(&f->toy, data + 80 + 64, 4, S_THREAD_LOCAL_ZEROFILL);
    assert_ok(read_toy(f), &f->err);
    assert_int_equal(f->image.info.tls_size, MTOY_DATA_SIZE - 24 + MTOY_BSS_SIZE);
}

/* The flags of a dylib_use_command mean what older linkers express by the command itself. */
static void flags_of_newer_commands_count(void **state)
{
    static const struct {
        uint32_t use, flags;
    } table[] = {{0, 0},
                 {DYLIB_USE_WEAK_LINK, EXTI_NEED_WEAK},
                 {DYLIB_USE_REEXPORT, EXTI_NEED_REEXPORT},
                 {DYLIB_USE_UPWARD, EXTI_NEED_UPWARD},
                 {8, 0}};
    struct fixture *f = *state;
    size_t load;

    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        macho_toy_make(&f->toy, (struct macho_toy_opts){0});
        load = mtoy_find(&f->toy, LC_LOAD_DYLIB, 0);
        memmove(f->toy.b + load + 28, f->toy.b + load + 24, sizeof MTOY_SYSTEM);
        mtoy_put(&f->toy, load + 8, 4, 28);
        mtoy_put(&f->toy, load + 12, 4, DYLIB_USE_MARKER);
        mtoy_put(&f->toy, load + 24, 4, table[i].use);
        assert_ok(read_toy(f), &f->err);
        assert_string_equal(f->image.needed[0].name, MTOY_SYSTEM);
        assert_int_equal(f->image.needed[0].flags, table[i].flags);
        mtoy_put(&f->toy, load + 12, 4, 2); /* without the marker: a long older command */
        assert_ok(read_toy(f), &f->err);
        assert_int_equal(f->image.needed[0].flags, 0);
    }
    macho_toy_make(&f->toy, (struct macho_toy_opts){0});
    mtoy_put(&f->toy, mtoy_find(&f->toy, LC_LOAD_DYLIB, 0), 4, LC_LOAD_UPWARD_DYLIB);
    assert_ok(read_toy(f), &f->err);
    assert_int_equal(f->image.needed[0].flags, EXTI_NEED_UPWARD);
}

/* Offsets of the CodeDirectory's flags. */
enum { SIGNATURE_FLAGS = 20 + 12 };

static void kinds_of_signatures_are_distinguished(void **state)
{
    static const struct {
        uint8_t flags[4];
        enum exti_signature signature;
    } table[] = {{{0, 2, 0, 2}, EXTI_SIGNATURE_LINKER},
                 {{0, 0, 0, 2}, EXTI_SIGNATURE_ADHOC},
                 {{0, 1, 0, 0}, EXTI_SIGNATURE_IDENTITY}};
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        macho_toy_make(&f->toy, (struct macho_toy_opts){0});
        memcpy(f->toy.b + f->toy.signature + SIGNATURE_FLAGS, table[i].flags, 4);
        assert_ok(read_toy(f), &f->err);
        assert_int_equal(f->image.info.signature, table[i].signature);
    }
    macho_toy_make(&f->toy, (struct macho_toy_opts){0});
    f->toy.b[f->toy.signature] = 0;
    assert_exti(read_toy(f), EXTI_E_FORMAT, &f->err, ANY_OFFSET);
    macho_toy_make(&f->toy, (struct macho_toy_opts){.naked = true});
    assert_ok(read_toy(f), &f->err);
    assert_int_equal(f->image.info.signature, EXTI_SIGNATURE_NONE);
}

/* Files for 10.5 have neither a trie nor opcodes; the symbol table lists everything. */
static void without_a_trie_the_symbol_table_counts(void **state)
{
    struct fixture *f = *state;
    struct macho_toy *t = &f->toy;
    const struct exti_image *im = &f->image;

    macho_toy_make(t, (struct macho_toy_opts){0});
    memset(t->b + t->linkedit, 0, t->starts - t->linkedit);
    mtoy_put(t, mtoy_find(t, LC_DYLD_INFO_ONLY, 0), 4, 0x77);
    assert_ok(read_toy(f), &f->err);
    assert_symbol(im, "_toy_func", EXTI_SYM_EXPORT | EXTI_SYM_FUNCTION, 0);
    assert_symbol(im, "_toy_value", EXTI_SYM_EXPORT, 0);
    assert_symbol(im, "_toy_weak", EXTI_SYM_EXPORT | EXTI_SYM_WEAK, 0);
    assert_symbol(im, "_PyFlat", 0, EXTI_BIND_FLAT);
    assert_symbol(im, "_PyOptional", EXTI_SYM_WEAK, EXTI_BIND_FLAT);
    assert_symbol(im, "_malloc", 0, 1);
    assert_int_equal(im->info.symbol_count, 6);

    t->b[t->symbols + 4] |= N_PEXT; /* hidden */
    t->b[t->symbols + 16 + 4] = N_ABS | N_EXT;
    assert_ok(read_toy(f), &f->err);
    assert_symbol(im, "_toy_value", EXTI_SYM_EXPORT, 0);
    assert_int_equal(im->info.symbol_count, 5);

    mtoy_put(t, t->symbols, 4, 0x1000);
    assert_exti(read_toy(f), EXTI_E_FORMAT, &f->err, ANY_OFFSET);
}

/* Flags of the trie's terminals: see mtoy_trie. */
static void kinds_of_exports_are_distinguished(void **state)
{
    struct fixture *f = *state;
    struct macho_toy *t = &f->toy;
    size_t func;

    macho_toy_make(t, (struct macho_toy_opts){0});
    func = t->trie + 9 + 2 + 5 + 1 + 6 + 1 + 5 + 1 + 1;
    assert_int_equal(mtoy_get(t, func, 1), EXPORT_SYMBOL_FLAGS_KIND_REGULAR);
    t->b[func] = EXPORT_SYMBOL_FLAGS_KIND_THREAD_LOCAL;
    assert_ok(read_toy(f), &f->err);
    assert_symbol(&f->image, "_toy_func", EXTI_SYM_EXPORT | EXTI_SYM_TLS, 0);
    t->b[func] = EXPORT_SYMBOL_FLAGS_KIND_ABSOLUTE;
    assert_ok(read_toy(f), &f->err);
    assert_symbol(&f->image, "_toy_func", EXTI_SYM_EXPORT, 0);
    memcpy(t->b + func, "\x08\x01x", 4); /* a re-export of another library's x */
    assert_ok(read_toy(f), &f->err);
    assert_symbol(&f->image, "_toy_func", EXTI_SYM_EXPORT, 0);
    t->b[t->trie + 2] = 0; /* an edge with an empty label */
    assert_exti(read_toy(f), EXTI_E_FORMAT, &f->err, ANY_OFFSET);
    assert_says(&f->err, "exports trie");
}

static void exports_may_have_any_names(void **state)
{
    static const char *const names[] = {"_PyFlat", "_PyOptional", "_malloc", NULL};
    struct fixture *f = *state;

    macho_toy_make(&f->toy, (struct macho_toy_opts){.arm = true, .exports = names});
    assert_ok(read_toy(f), &f->err);
    for (size_t i = 0; names[i]; i++)
        assert_symbol(&f->image, names[i], EXTI_SYM_EXPORT | EXTI_SYM_FUNCTION, 0);
    assert_int_equal(f->image.info.symbol_count, 7);
}

static void every_magic_is_recognised_except_that_of_java(void **state)
{
    static const struct {
        uint8_t bytes[8];
        size_t n;
        bool claimed;
    } table[] = {
        {{0xcf, 0xfa, 0xed, 0xfe}, 4, true},
        {{0xce, 0xfa, 0xed, 0xfe}, 4, true},
        {{0xfe, 0xed, 0xfa, 0xcf}, 4, true},
        {{0xfe, 0xed, 0xfa, 0xce}, 4, true},
        {{0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 2}, 8, true},
        {{0xca, 0xfe, 0xba, 0xbf, 0, 0, 0, 2}, 8, true},
        {{0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 0x34}, 8, false},
        {{0xca, 0xfe, 0xba, 0xbe, 0, 3, 0, 0x2d}, 8, false},
        {{0x7f, 'E', 'L', 'F'}, 4, false},
        {{0xcf, 0xfa, 0xed}, 3, false},
        {{0}, 0, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        assert_int_equal(exti__macho_format.probe(exti__span(table[i].bytes, table[i].n)),
                         table[i].claimed);
}

static void every_failed_allocation_is_reported(void **state)
{
    struct fixture *f = *state;

    macho_toy_make(&f->toy, (struct macho_toy_opts){.chained = true});
    macho_toy_make(&f->arm, (struct macho_toy_opts){.arm = true});
    mtoy_fat_start(&f->fat, false);
    mtoy_fat_add_toy(&f->fat, &f->toy);
    mtoy_fat_add_toy(&f->fat, &f->arm);
    for (int n = 0;; n++) {
        int rc;

        exti__mem_fail_after(n);
        rc = read_bytes(f, f->fat.b, f->fat.n);
        exti__mem_fail_after(-1);
        if (!rc) {
            assert_true(n > 30);
            break;
        }
        assert_exti(rc, EXTI_E_NOMEM, &f->err, ANY_OFFSET);
    }
    assert_int_equal(f->image.info.slice_count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        image_test(either_kind_of_fixups_is_described_alike),
        image_test(a_universal_file_is_described_slice_by_slice),
        image_test(a_faulty_slice_spoils_the_file),
        image_test(images_that_are_never_unloaded_are_recognised),
        image_test(withheld_constructors_are_recognised),
        image_test(thread_local_storage_is_summed),
        image_test(flags_of_newer_commands_count),
        image_test(kinds_of_signatures_are_distinguished),
        image_test(without_a_trie_the_symbol_table_counts),
        image_test(kinds_of_exports_are_distinguished),
        image_test(exports_may_have_any_names),
        image_test(every_magic_is_recognised_except_that_of_java),
        image_test(every_failed_allocation_is_reported),
    };

    return cmocka_run_group_tests_name("macho/macho_image", tests, NULL, NULL);
}
