#include "tests/unit/pe/pe_faults.h"

#include "pe/pe_format.h"

static int read_toy(struct pe_fixture *f)
{
    exti__image_clear(&f->image);
    f->err = (struct exti_error){0};
    return exti__pe_format.read(exti__span(f->toy.b, f->toy.n), &f->image, &f->err);
}

static void make_described(struct pe_fixture *f, struct pe_toy_opts o)
{
    pe_toy_make(&f->toy, o);
    assert_ok(read_toy(f), &f->err);
}

static void assert_symbol(const struct exti_image *im, size_t i, const char *name, uint32_t flags,
                          int32_t library)
{
    assert_true(i < im->info.symbol_count);
    assert_string_equal(im->symbols[i].name, name);
    assert_null(im->symbols[i].version);
    assert_int_equal(im->symbols[i].flags, flags);
    assert_int_equal(im->symbols[i].library, library);
}

static void assert_needed(const struct exti_image *im, size_t i, const char *name, uint32_t flags)
{
    assert_true(i < im->info.needed_count);
    assert_string_equal(im->needed[i].name, name);
    assert_int_equal(im->needed[i].flags, flags);
}

static void every_kind_of_toy_is_described(void **state)
{
    static const struct pe_toy_opts kinds[] = {
        {0},
        {.arm = true},
        {.narrow = true},
        {.low = true},
        {.no_lookup = true},
        {.bound = true},
        {.narrow = true, .by_address = true},
        {.symbols = true, .certified = true},
    };
    struct pe_fixture *f = *state;
    const struct exti_image *im = &f->image;

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        const struct pe_toy_opts o = kinds[i];

        make_described(f, o);
        assert_string_equal(im->info.format, "PE");
        assert_string_equal(im->info.machine, o.narrow ? "i386" : o.arm ? "arm64" : "x86-64");
        assert_int_equal(im->info.bits, o.narrow ? 32 : 64);
        assert_int_equal(im->info.big_endian, 0);
        assert_string_equal(im->info.id, PTOY_ID);
        assert_string_equal(im->info.build_id, PTOY_BUILD_ID);
        assert_null(im->info.rpath);
        assert_null(im->info.runpath);
        assert_int_equal(im->info.tls_size, PTOY_TLS_SIZE);
        assert_int_equal(im->info.signature,
                         o.certified ? EXTI_SIGNATURE_IDENTITY : EXTI_SIGNATURE_NONE);
        assert_int_equal(im->info.flags, EXTI_IMAGE_RELOCATABLE | (o.bound ? EXTI_IMAGE_BOUND : 0));
        assert_int_equal(im->info.overlay_size != 0, o.symbols);
        assert_null(im->info.unfit);
        assert_int_equal(im->info.header_room,
                         o.bound ? 0 : 0x400 - f->toy.sections - 40 * PTOY_SECTIONS);
        assert_int_equal(im->info.needed_count, 3);
        assert_needed(im, 0, "python311.dll", 0);
        assert_needed(im, 1, "KERNEL32.dll", 0);
        assert_needed(im, 2, "WS2_32.dll", EXTI_NEED_WEAK);
        assert_int_equal(im->info.symbol_count, 11);
        assert_symbol(im, 0, "PyInit_toy", EXTI_SYM_EXPORT | EXTI_SYM_FUNCTION, 0);
        assert_symbol(im, 1, "toy_alias", EXTI_SYM_EXPORT | EXTI_SYM_FUNCTION, 0);
        assert_symbol(im, 2, "toy_state", EXTI_SYM_EXPORT, 0);
        assert_symbol(im, 3, "#8", EXTI_SYM_EXPORT | EXTI_SYM_FUNCTION, 0);
        assert_symbol(im, 4, "toy_forward", EXTI_SYM_EXPORT, 0);
        assert_symbol(im, 5, "PyModule_Create2", 0, 1);
        assert_symbol(im, 6, "Py_BuildValue", 0, 1);
        assert_symbol(im, 7, "#12", 0, 2);
        assert_symbol(im, 8, "GetLastError", 0, 2);
        assert_symbol(im, 9, "#3", EXTI_SYM_WEAK, 3);
        assert_symbol(im, 10, "send", EXTI_SYM_WEAK, 3);
    }
}

static void symbols_have_kind_and_forwarder(void **state)
{
    struct pe_fixture *f = *state;
    const struct exti_image_symbol *s;
    size_t forwards = 0, ordinals = 0;

    make_described(f, (struct pe_toy_opts){0});
    for (size_t i = 0; i < f->image.info.symbol_count; i++) {
        s = &f->image.symbols[i];
        if (s->forward) {
            forwards++;
            assert_string_equal(s->name, "toy_forward");
            assert_string_equal(s->forward, "python311.PyLong_Type");
            assert_int_equal(s->ordinal, PTOY_ORDINAL_BASE + 4);
        } else if (!(s->flags & EXTI_SYM_EXPORT) && s->ordinal) {
            ordinals++;
            assert_int_equal(s->ordinal, s->library == 2 ? 12 : 3);
            assert_int_equal(s->name[0], '#');
        }
    }
    assert_int_equal(forwards, 1);
    assert_int_equal(ordinals, 2);
}

static void obstacles_to_copies_are_described(void **state)
{
    struct pe_fixture *f = *state;
    struct pe_toy *t = &f->toy;

    make_described(f, (struct pe_toy_opts){0});
    ptoy_put(t, t->optional + 70, 2, 0x160 | IMAGE_DLLCHARACTERISTICS_FORCE_INTEGRITY);
    ptoy_put(t, t->load_config + 78, 2, 0x800);
    assert_ok(read_toy(f), &f->err);
    assert_true(f->image.info.flags & EXTI_IMAGE_FORCE_INTEGRITY);
    assert_int_equal(f->image.info.load_flags, 0x800);
    ptoy_put(t, t->nt + 22, 2, ptoy_get(t, t->nt + 22, 2) | IMAGE_FILE_RELOCS_STRIPPED);
    assert_ok(read_toy(f), &f->err);
    assert_false(f->image.info.flags & EXTI_IMAGE_RELOCATABLE);
    assert_non_null(strstr(f->image.info.unfit, "IMAGE_FILE_RELOCS_STRIPPED"));
    make_described(f, (struct pe_toy_opts){0});
    ptoy_put(t, ptoy_section(t, PTOY_TEXT) + 16, 8, 0);
    assert_ok(read_toy(f), &f->err);
    assert_non_null(strstr(f->image.info.unfit, "packed"));
}

static void a_file_without_directories_is_described(void **state)
{
    struct pe_fixture *f = *state;
    const struct exti_image *im = &f->image;

    pe_toy_make(&f->toy, (struct pe_toy_opts){.room = 40});
    memset(f->toy.b + f->toy.directories, 0, 8 * 16);
    assert_ok(read_toy(f), &f->err);
    assert_null(im->info.id);
    assert_null(im->info.build_id);
    assert_int_equal(im->info.tls_size, 0);
    assert_int_equal(im->info.needed_count, 0);
    assert_int_equal(im->info.symbol_count, 0);
    assert_int_equal(im->info.header_room, 40);
}

static void directories_of_size_0_are_missing(void **state)
{
    static const unsigned directories[] = {IMAGE_DIRECTORY_ENTRY_DEBUG, IMAGE_DIRECTORY_ENTRY_TLS,
                                           IMAGE_DIRECTORY_ENTRY_SECURITY};
    struct pe_fixture *f = *state;

    pe_toy_make(&f->toy, (struct pe_toy_opts){.certified = true});
    for (size_t i = 0; i < ARRAY_SIZE(directories); i++)
        ptoy_put(&f->toy, ptoy_directory(&f->toy, directories[i]) + 4, 4, 0);
    assert_ok(read_toy(f), &f->err);
    assert_null(f->image.info.build_id);
    assert_int_equal(f->image.info.tls_size, 0);
    assert_int_equal(f->image.info.signature, EXTI_SIGNATURE_NONE);
}

/* ---- faults ---------------------------------------------------------------------------------- */

static void corrupt_directories_are_not_described(void **state)
{
    struct pe_fixture *f = *state;
    const struct pe_toy *t = &f->toy;

    pe_toy_make(&f->toy, (struct pe_toy_opts){0});
    const size_t debug = ptoy_directory(t, IMAGE_DIRECTORY_ENTRY_DEBUG);
    const size_t tls = ptoy_directory(t, IMAGE_DIRECTORY_ENTRY_TLS);
    const size_t record = t->debug + DEBUG_DIRECTORY_SIZE;
    const struct pe_fault faults[] = {
        {"PE signature", t->nt, 4, 0, EXTI_E_FORMAT, t->nt},
        {"debug directory: RVA 0x2700 is in section .data", debug, 4, 0x2700, EXTI_E_FORMAT, debug},
        {"debug directory: needs 56 bytes, 16 left", debug, 4, 0x33f0, EXTI_E_FORMAT,
         t->start[PTOY_RDATA] + 0x3f0},
        {"CodeView record: needs 1000000 bytes", record + 16, 4, 1000000, EXTI_E_FORMAT,
         t->codeview},
        {"CodeView record: ends early", record + 16, 4, 23, EXTI_E_FORMAT, ANY_OFFSET},
        {"CodeView record: ends early", record + 16, 4, 3, EXTI_E_FORMAT, t->codeview},
        {"CodeView record: RVA 0x5000 is in no section", record + 20, 4, 0x5000, EXTI_E_FORMAT,
         record + 20},
        {"TLS directory: RVA 0x2700 is in section .data", tls, 4, 0x2700, EXTI_E_FORMAT, tls},
        {"TLS directory: needs 40 bytes, 8 left", tls, 4, 0x33f8, EXTI_E_FORMAT,
         t->start[PTOY_RDATA] + 0x3f8},
        {"TLS directory: its data from 0x180002051 to 0x180002050", t->tls, 8, 0x180002051,
         EXTI_E_FORMAT, t->tls},
        {"TLS directory: its data from 0x180002040 to 0xffffffffffffffff do not fit into the image",
         t->tls + 8, 8, UINT64_MAX, EXTI_E_FORMAT, t->tls},
        {"export directory: its size is 8", ptoy_directory(t, 0) + 4, 4, 8, EXTI_E_FORMAT,
         ptoy_directory(t, 0) + 4},
        {"export ordinal table: entry 0", t->ordinals, 2, 9, EXTI_E_FORMAT, t->ordinals},
        {"import 0: its name", t->imports + 12, 4, 0x1080, EXTI_E_FORMAT, t->imports + 12},
        {"delay import 0: attributes", t->delay, 4, 0, EXTI_E_FORMAT, t->delay},
        {"neither an RVA nor an ordinal", t->lookup[0], 8, 1ull << 50, EXTI_E_FORMAT, t->lookup[0]},
    };

    assert_faults(f, (struct pe_toy_opts){0}, faults, ARRAY_SIZE(faults), read_toy);
    assert_null(f->image.needed);
    assert_null(f->image.info.format);
}

static void other_codeview_records_give_no_build_id(void **state)
{
    struct pe_fixture *f = *state;
    size_t record;

    pe_toy_make(&f->toy, (struct pe_toy_opts){0});
    record = f->toy.debug + DEBUG_DIRECTORY_SIZE;
    memcpy(f->toy.b + f->toy.codeview, "NB10", 4);
    assert_ok(read_toy(f), &f->err);
    assert_null(f->image.info.build_id);
    /* A record that is not loaded is found by its file offset. */
    memcpy(f->toy.b + f->toy.codeview, "RSDS", 4);
    ptoy_put(&f->toy, record + 20, 4, 0);
    assert_ok(read_toy(f), &f->err);
    assert_string_equal(f->image.info.build_id, PTOY_BUILD_ID);
    ptoy_put(&f->toy, record + 24, 4, 0x20000);
    assert_exti(read_toy(f), EXTI_E_FORMAT, &f->err, 0x20000);
    assert_says(&f->err, "CodeView record: needs");
}

/* Many descriptors that share one import lookup table. */
static void absurdly_many_imports_are_rejected(void **state)
{
    enum { COPIES = 4001, SIZE = 0x18000 };
    struct pe_fixture *f = *state;
    size_t header, start, n = 0;

    pe_toy_make(&f->toy, (struct pe_toy_opts){0});
    header = ptoy_section(&f->toy, PTOY_RELOC);
    start = f->toy.start[PTOY_RELOC];
    ptoy_put(&f->toy, header + 8, 4, SIZE);
    ptoy_put(&f->toy, header + 16, 4, SIZE);
    ptoy_put(&f->toy, f->toy.optional + 56, 4, f->toy.rva[PTOY_RELOC] + SIZE);
    f->toy.n = start + SIZE;
    for (; n < COPIES * 20; n += 20) {
        memcpy(f->toy.b + start + n, f->toy.b + f->toy.imports, 20);
        ptoy_put(&f->toy, start + n, 4, f->toy.rva[PTOY_RELOC] + COPIES * 20 + 20);
    }
    for (n += 20; n < SIZE - 8; n += 8)
        f->toy.b[start + n + 7] = 0x80;
    ptoy_put(&f->toy, ptoy_directory(&f->toy, IMAGE_DIRECTORY_ENTRY_IMPORT), 4,
             f->toy.rva[PTOY_RELOC]);
    assert_exti(read_toy(f), EXTI_E_FORMAT, &f->err, EXTI_NO_OFFSET);
    assert_says(&f->err, "imports: more symbols than fit into a file of this size");
}

static void every_failed_allocation_is_reported(void **state)
{
    struct pe_fixture *f = *state;

    pe_toy_make(&f->toy, (struct pe_toy_opts){0});
    for (int n = 0;; n++) {
        int rc;

        exti__mem_fail_after(n);
        rc = read_toy(f);
        exti__mem_fail_after(-1);
        if (!rc) {
            assert_true(n > 8);
            break;
        }
        assert_exti(rc, EXTI_E_NOMEM, &f->err, ANY_OFFSET);
        assert_null(f->image.info.format);
    }
    assert_int_equal(f->image.info.symbol_count, 11);
}

static void probe_recognises_the_magic(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        bool claimed;
    } table[] = {{"MZ", 2, true},
                 {"MZ\x90", 3, true},
                 {"M", 1, false},
                 {"ZM", 2, false},
                 {"\x7f"
                  "ELF",
                  4, false},
                 {"", 0, false}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        assert_int_equal(exti__pe_format.probe(exti__span(table[i].bytes, table[i].n)),
                         table[i].claimed);
    assert_int_equal(exti__pe_format.format, EXTI_FORMAT_PE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        pe_test(every_kind_of_toy_is_described),
        pe_test(symbols_have_kind_and_forwarder),
        pe_test(obstacles_to_copies_are_described),
        pe_test(a_file_without_directories_is_described),
        pe_test(directories_of_size_0_are_missing),
        pe_test(corrupt_directories_are_not_described),
        pe_test(other_codeview_records_give_no_build_id),
        pe_test(absurdly_many_imports_are_rejected),
        pe_test(every_failed_allocation_is_reported),
        pe_test(probe_recognises_the_magic),
    };

    return cmocka_run_group_tests_name("pe/pe_image", tests, NULL, NULL);
}
