#include "tests/unit/pe/pe_faults.h"

#include "pe/read/pe_import.h"

struct seen {
    struct pe_import list[8];
    size_t count;
    char symbols[256]; /* "PyModule_Create2 Py_BuildValue | #12 GetLastError |" */
    const struct pe_file *file;
    int stop; /* the answer to the next call */
};

static int note_symbol(void *user, const char *name, uint16_t ordinal, struct exti_error *err)
{
    struct seen *s = user;
    size_t n = strlen(s->symbols);

    (void)err;
    if (s->stop)
        return s->stop;
    if (name)
        snprintf(s->symbols + n, sizeof s->symbols - n, "%s ", name);
    else
        snprintf(s->symbols + n, sizeof s->symbols - n, "#%u ", ordinal);
    return 0;
}

static int note_import(void *user, const struct pe_import *im, struct exti_error *err)
{
    struct seen *s = user;

    (void)err;
    if (s->count == ARRAY_SIZE(s->list))
        return -100;
    s->list[s->count++] = *im;
    return s->stop;
}

static int list_imports(struct pe_fixture *f, struct seen *s)
{
    int rc = exti__pe_imports(&f->file, note_import, s, &f->err);

    for (size_t i = 0; !rc && i < s->count; i++) {
        rc = exti__pe_import_symbols(&f->file, &s->list[i], note_symbol, s, &f->err);
        strncat(s->symbols, "| ", sizeof s->symbols - strlen(s->symbols) - 1);
    }
    return rc;
}

static int attempt(struct pe_fixture *f)
{
    struct seen s = {.count = 0};
    int rc = pe_open_toy(f);

    assert_ok(rc, &f->err);
    return list_imports(f, &s);
}

static void every_import_is_found(void **state)
{
    static const struct pe_toy_opts kinds[] = {{0},
                                               {.narrow = true},
                                               {.arm = true},
                                               {.low = true},
                                               {.no_lookup = true},
                                               {.narrow = true, .no_lookup = true},
                                               {.bound = true},
                                               {.narrow = true, .by_address = true}};
    struct pe_fixture *f = *state;
    const struct pe_toy *t = &f->toy;

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        const struct pe_toy_opts o = kinds[i];
        struct seen s = {.count = 0};

        pe_make(f, o);
        assert_ok(list_imports(f, &s), &f->err);
        assert_int_equal(s.count, 3);
        assert_string_equal(s.list[0].name, "python311.dll");
        assert_string_equal(s.list[1].name, "KERNEL32.dll");
        assert_string_equal(s.list[2].name, "WS2_32.dll");
        for (size_t k = 0; k < 2; k++) {
            assert_int_equal(s.list[k].at, t->imports + 20 * k);
            assert_int_equal(s.list[k].name_at, t->imports + 20 * k + 12);
            assert_int_equal(s.list[k].name_rva, ptoy_rva(t, t->name[k]));
            assert_int_equal(s.list[k].iat_rva, ptoy_rva(t, t->iat[k]));
            assert_int_equal(s.list[k].lookup_rva,
                             ptoy_rva(t, o.no_lookup ? t->iat[k] : t->lookup[k]));
            assert_int_equal(s.list[k].lookup_at, t->imports + 20 * k + (o.no_lookup ? 16 : 0));
            assert_int_equal(s.list[k].timestamp, o.bound ? UINT32_MAX : 0);
            assert_false(s.list[k].delay);
            assert_false(s.list[k].by_address);
        }
        assert_int_equal(s.list[2].at, t->delay);
        assert_int_equal(s.list[2].name_at, t->delay + 4);
        assert_int_equal(s.list[2].name_rva, ptoy_rva(t, t->delay_name));
        assert_int_equal(s.list[2].iat_rva, ptoy_rva(t, t->delay_iat));
        assert_int_equal(s.list[2].lookup_rva, ptoy_rva(t, t->delay_lookup));
        assert_true(s.list[2].delay);
        assert_int_equal(s.list[2].by_address, o.by_address);
        assert_string_equal(s.symbols,
                            "PyModule_Create2 Py_BuildValue | #12 GetLastError | #3 send | ");
    }
}

static void no_directory_means_no_imports(void **state)
{
    struct pe_fixture *f = *state;
    struct seen s = {.count = 0};

    pe_toy_make(&f->toy, (struct pe_toy_opts){0});
    ptoy_put(&f->toy, ptoy_directory(&f->toy, IMAGE_DIRECTORY_ENTRY_IMPORT), 4, 0);
    ptoy_put(&f->toy, ptoy_directory(&f->toy, IMAGE_DIRECTORY_ENTRY_DELAY_IMPORT), 4, 0);
    assert_ok(pe_open_toy(f), &f->err);
    assert_ok(list_imports(f, &s), &f->err);
    assert_int_equal(s.count, 0);
}

/* Name or FirstThunk of 0 ends the list, whatever the other fields hold. */
static void half_a_terminator_ends_the_list(void **state)
{
    static const size_t fields[] = {12, 16};
    struct pe_fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        struct seen s = {.count = 0};

        pe_toy_make(&f->toy, (struct pe_toy_opts){0});
        ptoy_put(&f->toy, f->toy.imports + 20 + fields[i], 4, 0);
        assert_ok(pe_open_toy(f), &f->err);
        assert_ok(list_imports(f, &s), &f->err);
        assert_string_equal(s.symbols, "PyModule_Create2 Py_BuildValue | #3 send | ");
    }
}

/* Windows ignores an OriginalFirstThunk outside the image. */
static void a_lookup_table_outside_the_image_is_ignored(void **state)
{
    static const uint32_t rubbish[] = {1, 0x3ff, 0x5000, 0xffffffff};
    struct pe_fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(rubbish); i++) {
        struct seen s = {.count = 0};

        pe_toy_make(&f->toy, (struct pe_toy_opts){0});
        ptoy_put(&f->toy, f->toy.imports, 4, rubbish[i]);
        assert_ok(pe_open_toy(f), &f->err);
        assert_ok(list_imports(f, &s), &f->err);
        assert_int_equal(s.list[0].lookup_rva, s.list[0].iat_rva);
        assert_string_equal(s.symbols,
                            "PyModule_Create2 Py_BuildValue | #12 GetLastError | #3 send | ");
    }
}

static void corrupt_imports_are_rejected(void **state)
{
    struct pe_fixture *f = *state;
    const struct pe_toy *t = &f->toy;

    pe_toy_make(&f->toy, (struct pe_toy_opts){0});
    const size_t directory = ptoy_directory(t, IMAGE_DIRECTORY_ENTRY_IMPORT), at = t->imports;
    const struct pe_fault faults[] = {
        {"import directory: RVA 0x2700 is in section .data, past its bytes in the file", directory,
         4, 0x2700, EXTI_E_FORMAT, directory},
        {"import directory: needs 20 bytes, 12 left", directory, 4, 0x33f4, EXTI_E_FORMAT,
         t->start[PTOY_RDATA] + 0x3f4},
        {"import 0: RVA 0x2700 is in section .data, past", at, 4, 0x2700, EXTI_E_FORMAT, at},
        {"import 1: RVA 0x1200 is in section .text, past", at + 20, 4, 0x1200, EXTI_E_FORMAT,
         at + 20},
        {"import 0: RVA 0x5000 is in no section", at + 12, 4, 0x5000, EXTI_E_FORMAT, at + 12},
        {"import 0: its name has the byte 0xc3", at + 12, 4, 0x1080, EXTI_E_FORMAT, at + 12},
        {"import 1: its name is empty", at + 32, 4, 0x11f0, EXTI_E_FORMAT, at + 32},
        {"import 0: its name has the byte 0x1f", t->name[0] + 3, 1, 0x1f, EXTI_E_FORMAT, at + 12},
        {"import 0: its name has the byte 0x7f", t->name[0] + 3, 1, 0x7f, EXTI_E_FORMAT, at + 12},
        {"import 1: its address table's RVA 0x5000 is in no section", at + 36, 4, 0x5000,
         EXTI_E_FORMAT, at + 36},
        {"entry 0x100000000 is neither an RVA nor an ordinal", t->lookup[0], 8, 0x100000000,
         EXTI_E_FORMAT, t->lookup[0]},
        {"imports from python311.dll: entry 0xfffffffe is neither", t->lookup[0], 8, 0xfffffffe,
         EXTI_E_FORMAT, t->lookup[0]},
        {"imports from KERNEL32.dll: entry 0x4000000000000000", t->lookup[1] + 8, 8,
         (uint64_t)1 << 62, EXTI_E_FORMAT, t->lookup[1] + 8},
        {"imported symbol: RVA 0x5002 is in no section", t->lookup[0] + 8, 8, 0x5000, EXTI_E_FORMAT,
         t->lookup[0] + 8},
    };

    assert_faults(f, (struct pe_toy_opts){0}, faults, ARRAY_SIZE(faults), attempt);
    pe_toy_make(&f->toy, (struct pe_toy_opts){.no_lookup = true, .bound = true});
    assert_exti(attempt(f), EXTI_E_UNSUPPORTED, &f->err, f->toy.imports + 4);
    assert_says(&f->err, "import 0: bound to python311.dll without an import lookup table");
    pe_toy_make(&f->toy, (struct pe_toy_opts){.no_lookup = true});
    ptoy_put(&f->toy, at + 16, 4, 0x2700);
    ptoy_put(&f->toy, f->toy.imports + 16, 4, 0x2700);
    assert_exti(attempt(f), EXTI_E_FORMAT, &f->err, f->toy.imports + 16);
}

static void corrupt_delay_imports_are_rejected(void **state)
{
    struct pe_fixture *f = *state;
    const struct pe_toy *t = &f->toy;
    const struct pe_toy_opts old = {.narrow = true, .by_address = true};

    pe_toy_make(&f->toy, (struct pe_toy_opts){0});
    const size_t directory = ptoy_directory(t, IMAGE_DIRECTORY_ENTRY_DELAY_IMPORT), at = t->delay;
    const struct pe_fault faults[] = {
        {"delay import directory: RVA 0x2700", directory, 4, 0x2700, EXTI_E_FORMAT, directory},
        {"delay import directory: needs 32 bytes", directory, 4, 0x33e8, EXTI_E_FORMAT,
         t->start[PTOY_RDATA] + 0x3e8},
        {"delay import 0: attributes 0x0 mean that its fields hold addresses", at, 4, 0,
         EXTI_E_FORMAT, at},
        {"delay import 0: RVA 0x5000", at + 4, 4, 0x5000, EXTI_E_FORMAT, at + 4},
        {"delay import 0: its name has the byte 0xc3", at + 4, 4, 0x1080, EXTI_E_FORMAT, at + 4},
        {"delay import 0: its address table's RVA 0x0", at + 12, 4, 0, EXTI_E_FORMAT, at + 12},
        {"delay import 0: RVA 0x2700", at + 16, 4, 0x2700, EXTI_E_FORMAT, at + 16},
        {"imports from WS2_32.dll: entry", t->delay_lookup, 8, (uint64_t)1 << 40, EXTI_E_FORMAT,
         t->delay_lookup},
    };

    assert_faults(f, (struct pe_toy_opts){0}, faults, ARRAY_SIZE(faults), attempt);
    pe_toy_make(&f->toy, old);
    const struct pe_fault old_faults[] = {
        {"delay import 0: address 0x30d4 is below the image's base 0x10000000", t->delay + 4, 4,
         0x30d4, EXTI_E_FORMAT, t->delay + 4},
        {"delay import 0: RVA 0x6000000", t->delay + 4, 4, 0x16000000, EXTI_E_FORMAT, t->delay + 4},
        {"delay import 0: address 0x0 is below", t->delay + 12, 4, 0, EXTI_E_FORMAT, t->delay + 12},
        {"delay import 0: address 0x0 is below", t->delay + 16, 4, 0, EXTI_E_FORMAT, t->delay + 16},
        {"imports from WS2_32.dll: entry 0x3000 is neither", t->delay_lookup + 4, 4, 0x3000,
         EXTI_E_FORMAT, t->delay_lookup + 4},
    };

    assert_faults(f, old, old_faults, ARRAY_SIZE(old_faults), attempt);
}

/* ---- limits ---------------------------------------------------------------------------------- */

static size_t fill_with_descriptors(struct pe_fixture *f, size_t bytes)
{
    size_t header, start;

    pe_toy_make(&f->toy, (struct pe_toy_opts){0});
    header = ptoy_section(&f->toy, PTOY_RELOC);
    start = f->toy.start[PTOY_RELOC];
    ptoy_put(&f->toy, header + 8, 4, bytes);
    ptoy_put(&f->toy, header + 16, 4, bytes);
    ptoy_put(&f->toy, f->toy.optional + 56, 4, f->toy.rva[PTOY_RELOC] + bytes);
    f->toy.n = start + bytes;
    return start;
}

static int stop_never(void *user, const struct pe_import *im, struct exti_error *err)
{
    (void)im;
    (void)err;
    ++*(size_t *)user;
    return 0;
}

static void endless_descriptors_are_rejected(void **state)
{
    struct pe_fixture *f = *state;
    size_t start = fill_with_descriptors(f, 0x15000), count = 0;

    for (size_t i = 0; i < 0x15000 / 20; i++)
        memcpy(f->toy.b + start + 20 * i, f->toy.b + f->toy.imports, 20);
    ptoy_put(&f->toy, ptoy_directory(&f->toy, IMAGE_DIRECTORY_ENTRY_IMPORT), 4,
             f->toy.rva[PTOY_RELOC]);
    assert_ok(pe_open_toy(f), &f->err);
    assert_exti(exti__pe_imports(&f->file, stop_never, &count, &f->err), EXTI_E_FORMAT, &f->err,
                start + 20 * 4096);
    assert_says(&f->err, "import directory: no end after 4096 descriptors");
    assert_int_equal(count, 4096);
}

static void endless_symbols_are_rejected(void **state)
{
    struct pe_fixture *f = *state;
    struct seen s = {.count = 0};
    static uint8_t file[0x100000];
    size_t start = fill_with_descriptors(f, 0x1000);

    /* More bytes than the toy has. */
    ptoy_put(&f->toy, ptoy_section(&f->toy, PTOY_RELOC) + 8, 4, 0x81000);
    ptoy_put(&f->toy, ptoy_section(&f->toy, PTOY_RELOC) + 16, 4, 0x81000);
    ptoy_put(&f->toy, f->toy.optional + 56, 4, f->toy.rva[PTOY_RELOC] + 0x81000);
    ptoy_put(&f->toy, f->toy.imports, 4, f->toy.rva[PTOY_RELOC]);
    memcpy(file, f->toy.b, start);
    for (size_t i = start; i < start + 0x81000; i += 8)
        file[i + 7] = 0x80;
    exti__pe_close(&f->file);
    assert_ok(exti__pe_open(exti__span(file, start + 0x81000), &f->file, &f->err), &f->err);
    assert_ok(exti__pe_imports(&f->file, note_import, &s, &f->err), &f->err);
    assert_exti(exti__pe_import_symbols(&f->file, &s.list[0], note_symbol, &s, &f->err),
                EXTI_E_FORMAT, &f->err, start + 0x80000);
    assert_says(&f->err, "imports from python311.dll: no end after 65536 symbols");
}

static void tables_without_end_in_their_section_are_rejected(void **state)
{
    struct pe_fixture *f = *state;

    pe_toy_make(&f->toy, (struct pe_toy_opts){0});
    ptoy_put(&f->toy, 0x5f8, 8, (uint64_t)1 << 63 | 1);
    ptoy_put(&f->toy, f->toy.imports, 4, 0x11f8);
    assert_exti(attempt(f), EXTI_E_FORMAT, &f->err, 0x600);
    assert_says(&f->err, "import lookup table: ends early");
}

static void symbols_are_read_at_the_import_s_address(void **state)
{
    struct pe_fixture *f = *state;
    struct seen s = {.count = 0};

    pe_make(f, (struct pe_toy_opts){0});
    assert_ok(exti__pe_imports(&f->file, note_import, &s, &f->err), &f->err);
    s.list[1].lookup_rva = 0x5000;
    assert_exti(exti__pe_import_symbols(&f->file, &s.list[1], note_symbol, &s, &f->err),
                EXTI_E_FORMAT, &f->err, f->toy.imports + 20);
    assert_says(&f->err, "import lookup table: RVA 0x5000 is in no section");
}

static void long_import_names_are_rejected(void **state)
{
    struct pe_fixture *f = *state;
    size_t start = fill_with_descriptors(f, 0x6000);

    memset(f->toy.b + start, 'x', 255);
    ptoy_put(&f->toy, f->toy.imports + 12, 4, f->toy.rva[PTOY_RELOC]);
    assert_ok(attempt(f), &f->err);
    f->toy.b[start + 255] = 'x';
    assert_exti(attempt(f), EXTI_E_FORMAT, &f->err, start);
    assert_says(&f->err, "import 0: string is longer than 255 bytes");
    ptoy_put(&f->toy, f->toy.imports + 12, 4, ptoy_rva(&f->toy, f->toy.name[0]));
    memset(f->toy.b + start + 2, 'x', 0x4001);
    ptoy_put(&f->toy, f->toy.lookup[0], 8, f->toy.rva[PTOY_RELOC]);
    assert_exti(attempt(f), EXTI_E_FORMAT, &f->err, start + 2);
    assert_says(&f->err, "imported symbol: string is longer than 16384 bytes");
}

static void the_callback_s_result_is_returned(void **state)
{
    struct pe_fixture *f = *state;
    struct seen s = {.stop = 17};

    pe_make(f, (struct pe_toy_opts){0});
    assert_int_equal(exti__pe_imports(&f->file, note_import, &s, &f->err), 17);
    assert_int_equal(s.count, 1);
    assert_int_equal(exti__pe_import_symbols(&f->file, &s.list[0], note_symbol, &s, &f->err), 17);
    assert_string_equal(s.symbols, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        pe_test(every_import_is_found),
        pe_test(no_directory_means_no_imports),
        pe_test(half_a_terminator_ends_the_list),
        pe_test(a_lookup_table_outside_the_image_is_ignored),
        pe_test(corrupt_imports_are_rejected),
        pe_test(corrupt_delay_imports_are_rejected),
        pe_test(endless_descriptors_are_rejected),
        pe_test(endless_symbols_are_rejected),
        pe_test(tables_without_end_in_their_section_are_rejected),
        pe_test(symbols_are_read_at_the_import_s_address),
        pe_test(long_import_names_are_rejected),
        pe_test(the_callback_s_result_is_returned),
    };

    return cmocka_run_group_tests_name("pe/pe_import", tests, NULL, NULL);
}
