#include "tests/unit/pe/pe_faults.h"

static void every_kind_of_toy_is_read(void **state)
{
    static const struct pe_toy_opts kinds[] = {
        {0},
        {.arm = true},
        {.narrow = true},
        {.low = true},
        {.no_lookup = true},
        {.bound = true},
        {.narrow = true, .by_address = true},
        {.symbols = true, .checksum = true},
        {.certified = true},
        {.symbols = true, .certified = true},
        {.full = true},
        {.room = 40},
    };
    struct pe_fixture *f = *state;
    const struct pe_file *p = &f->file;
    const struct pe_toy *t = &f->toy;

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        const struct pe_toy_opts o = kinds[i];

        pe_make(f, o);
        assert_int_equal(p->plus, !o.narrow);
        assert_string_equal(exti__pe_machine(p->machine), o.narrow ? "i386"
                                                          : o.arm  ? "arm64"
                                                                   : "x86-64");
        assert_int_equal(p->nt_at, t->nt);
        assert_int_equal(p->optional_at, t->optional);
        assert_int_equal(p->sections_at, t->sections);
        assert_int_equal(p->characteristics, IMAGE_FILE_DLL | IMAGE_FILE_EXECUTABLE_IMAGE);
        assert_int_equal(p->dll_characteristics, 0x160);
        assert_int_equal(p->image_base, t->base);
        assert_int_equal(p->section_alignment, o.low ? 0x200 : 0x1000);
        assert_int_equal(p->file_alignment, 0x200);
        assert_int_equal(p->size_of_image, ptoy_get(t, t->optional + 56, 4));
        assert_int_equal(p->size_of_headers, 0x400);
        assert_int_equal(p->checksum, ptoy_get(t, t->optional + 64, 4));
        assert_int_equal(p->checksum != 0, o.checksum);
        assert_int_equal(p->symbols_at, t->symbols);
        assert_int_equal(p->symbol_count, o.symbols ? 2 : 0);
        assert_int_equal(p->directory_count, 16);
        assert_int_equal(p->directories[IMAGE_DIRECTORY_ENTRY_IMPORT].at, t->directories + 8);
        assert_int_equal(p->directories[IMAGE_DIRECTORY_ENTRY_IMPORT].rva, ptoy_rva(t, t->imports));
        assert_int_equal(p->directories[IMAGE_DIRECTORY_ENTRY_IMPORT].size, 60);
        assert_int_equal(p->section_count, PTOY_SECTIONS);
        assert_string_equal(p->sections[PTOY_RDATA].name, ".rdata");
        assert_int_equal(p->sections[PTOY_RDATA].at, ptoy_section(t, PTOY_RDATA));
        assert_int_equal(p->sections[PTOY_RDATA].rva, t->rva[PTOY_RDATA]);
        assert_int_equal(p->sections[PTOY_RDATA].raw_offset, t->start[PTOY_RDATA]);
        assert_int_equal(p->sections[PTOY_DATA].virtual_size, t->virtual_size[PTOY_DATA]);
        assert_int_equal(p->sections[PTOY_DATA].raw_size, 0x200);
        assert_int_equal(p->sections[PTOY_DATA].characteristics, 0xc0000040);
        assert_int_equal(p->raw_end, t->start[PTOY_RELOC] + 0x200);
        assert_int_equal(p->overlay_end, o.certified ? t->certificates : t->n);
        assert_int_equal(p->dependent_load_flags, 0x800);
        assert_int_equal(p->dependent_load_flags_at, t->load_config + (o.narrow ? 54 : 78));
    }
}

/* ---- refused files ------------------------------------------------------------------------- */

static void corrupt_pe_headers_are_rejected(void **state)
{
    struct pe_fixture *f = *state;
    size_t nt, optional;

    pe_toy_make(&f->toy, (struct pe_toy_opts){0});
    nt = f->toy.nt;
    optional = f->toy.optional;
    const struct pe_fault faults[] = {
        {"MS-DOS header: magic is 0x5a4c", 0, 2, 0x5a4c, EXTI_E_FORMAT, 0},
        {"a COFF object for x86-64", 0, 2, 0x8664, EXTI_E_UNSUPPORTED, 0},
        {"a COFF object for i386", 0, 2, 0x14c, EXTI_E_UNSUPPORTED, 0},
        {"e_lfanew is 0xffffff00, where a file of", 60, 4, 0xffffff00, EXTI_E_FORMAT, 60},
        {"e_lfanew", 60, 4, f->toy.n - 20, EXTI_E_FORMAT, 60},
        {"PE signature is 0x90909090, not 0x4550", 60, 4, 0x44, EXTI_E_FORMAT, 0x44},
        {"(NE), not a PE file", nt, 2, 0x454e, EXTI_E_UNSUPPORTED, nt},
        {"(LE)", nt, 2, 0x454c, EXTI_E_UNSUPPORTED, nt},
        {"(LX)", nt, 2, 0x584c, EXTI_E_UNSUPPORTED, nt},
        {"for arm64ec (Machine 0xa641); i386, x86-64", nt + 4, 2, 0xa641, EXTI_E_UNSUPPORTED,
         nt + 4},
        {"for arm64x", nt + 4, 2, 0xa64e, EXTI_E_UNSUPPORTED, nt + 4},
        {"for armnt", nt + 4, 2, 0x1c4, EXTI_E_UNSUPPORTED, nt + 4},
        {"for ia64", nt + 4, 2, 0x200, EXTI_E_UNSUPPORTED, nt + 4},
        {"for unknown (Machine 0x7777)", nt + 4, 2, 0x7777, EXTI_E_UNSUPPORTED, nt + 4},
        {"PE header: 0 sections, not 1 to 96", nt + 6, 2, 0, EXTI_E_FORMAT, nt + 6},
        {"PE header: 97 sections", nt + 6, 2, 97, EXTI_E_FORMAT, nt + 6},
        {"COFF symbol table: needs 0 bytes", nt + 12, 4, 0x7fffffff, EXTI_E_FORMAT, 0x7fffffff},
        {"SizeOfOptionalHeader is 239, too small for 16", nt + 20, 2, 239, EXTI_E_FORMAT, nt + 20},
        {"optional header: ends early", nt + 20, 2, 100, EXTI_E_FORMAT, ANY_OFFSET},
        {"optional header: needs 65535 bytes", nt + 20, 2, 65535, EXTI_E_FORMAT, optional},
        {"Characteristics 0x2000 say that the file was not linked", nt + 22, 2, 0x2000,
         EXTI_E_FORMAT, nt + 22},
        {"a program (EXE), not a DLL", nt + 22, 2, 2, EXTI_E_UNSUPPORTED, nt + 22},
        {"magic is 0x10b, not 0x20b, which x86-64 needs", optional, 2, 0x10b, EXTI_E_FORMAT,
         optional},
        {"magic is 0x20b, not 0x10b, which i386 needs", nt + 4, 2, 0x14c, EXTI_E_FORMAT, optional},
        {"SectionAlignment is 0x1001", optional + 32, 4, 0x1001, EXTI_E_FORMAT, optional + 32},
        {"SectionAlignment is 0x800", optional + 32, 4, 0x800, EXTI_E_FORMAT, optional + 32},
        {"SectionAlignment is 0x100", optional + 32, 4, 0x100, EXTI_E_FORMAT, optional + 32},
        {"FileAlignment is 0x201", optional + 36, 4, 0x201, EXTI_E_FORMAT, optional + 36},
        {"FileAlignment is 0x0", optional + 36, 4, 0, EXTI_E_FORMAT, optional + 36},
        {"FileAlignment is 0x20000", optional + 36, 4, 0x20000, EXTI_E_FORMAT, optional + 36},
        {"FileAlignment is 0x10, as in drivers", optional + 36, 4, 16, EXTI_E_UNSUPPORTED,
         optional + 36},
        {"SizeOfImage is 0x9000, but the sections end at 0x5000", optional + 56, 4, 0x9000,
         EXTI_E_FORMAT, optional + 56},
        {"SizeOfHeaders is 0x200", optional + 60, 4, 0x200, EXTI_E_FORMAT, optional + 60},
        {"SizeOfHeaders is 0x401", optional + 60, 4, 0x401, EXTI_E_FORMAT, optional + 60},
        {"SizeOfHeaders is 0x80000000", optional + 60, 4, 0x80000000, EXTI_E_FORMAT, optional + 60},
        {"NumberOfRvaAndSizes is 17, more than 16", optional + 108, 4, 17, EXTI_E_FORMAT,
         optional + 108},
    };

    assert_faults(f, (struct pe_toy_opts){0}, faults, ARRAY_SIZE(faults), pe_open_toy);
    assert_null(f->file.sections);
}

static void programs_for_older_systems_are_rejected(void **state)
{
    struct pe_fixture *f = *state;

    pe_toy_make(&f->toy, (struct pe_toy_opts){0});
    ptoy_put(&f->toy, 24, 2, 0x1c); /* where MS-DOS programs have their relocations */
    ptoy_put(&f->toy, f->toy.nt, 4, 0);
    assert_exti(pe_open_toy(f), EXTI_E_UNSUPPORTED, &f->err, 0);
    assert_says(&f->err, "an MS-DOS program, not a PE file");
    ptoy_put(&f->toy, 60, 4, 0xfffffffe);
    assert_exti(pe_open_toy(f), EXTI_E_UNSUPPORTED, &f->err, 0);
    assert_says(&f->err, "an MS-DOS program");
}

static void overlapping_headers_are_rejected(void **state)
{
    struct pe_fixture *f = *state;

    pe_toy_make(&f->toy, (struct pe_toy_opts){0});
    memmove(f->toy.b + 0x82, f->toy.b + 0x80, 0x300);
    ptoy_put(&f->toy, 60, 4, 0x82);
    assert_exti(pe_open_toy(f), EXTI_E_FORMAT, &f->err, 60);
    assert_says(&f->err, "e_lfanew is 0x82, not a multiple of 4 from 0x40");
    pe_toy_make(&f->toy, (struct pe_toy_opts){0});
    ptoy_put(&f->toy, 60, 4, 4);
    ptoy_put(&f->toy, 4, 4, IMAGE_NT_SIGNATURE);
    assert_exti(pe_open_toy(f), EXTI_E_FORMAT, &f->err, 60);
    assert_says(&f->err, "e_lfanew is 0x4,");
}

static void corrupt_sections_are_rejected(void **state)
{
    struct pe_fixture *f = *state;
    size_t text, data, rdata, reloc;

    pe_toy_make(&f->toy, (struct pe_toy_opts){0});
    text = ptoy_section(&f->toy, PTOY_TEXT);
    data = ptoy_section(&f->toy, PTOY_DATA);
    rdata = ptoy_section(&f->toy, PTOY_RDATA);
    reloc = ptoy_section(&f->toy, PTOY_RELOC);
    const struct pe_fault faults[] = {
        {"section .text: VirtualSize is 0xffffffff, not such that it ends below 0xffffffff",
         text + 8, 4, 0xffffffff, EXTI_E_FORMAT, text + 8},
        {"section .data: VirtualAddress is 0x2000, not where the section before it ends, 0x3000",
         text + 8, 4, 0x1001, EXTI_E_FORMAT, data + 12},
        {"section .text: VirtualAddress is 0x0, not behind SizeOfHeaders 0x400", text + 12, 4, 0,
         EXTI_E_FORMAT, text + 12},
        {"section .text: VirtualAddress is 0x1004, not a multiple of 0x1000", text + 12, 4, 0x1004,
         EXTI_E_FORMAT, text + 12},
        {"section .rdata: VirtualAddress is 0x4000", rdata + 12, 4, 0x4000, EXTI_E_FORMAT,
         rdata + 12},
        {"section .rdata: VirtualAddress is 0x1000", rdata + 12, 4, 0x1000, EXTI_E_FORMAT,
         rdata + 12},
        {"section .text: SizeOfRawData is 0x123", text + 16, 4, 0x123, EXTI_E_FORMAT, text + 16},
        {"section contents: needs 4294966784 bytes", reloc + 16, 4, 0xfffffe00, EXTI_E_FORMAT,
         f->toy.start[PTOY_RELOC]},
        {"section .data: PointerToRawData is 0x601, not a multiple of FileAlignment from 0x400",
         data + 20, 4, 0x601, EXTI_E_FORMAT, data + 20},
        {"section .data: PointerToRawData is 0x200", data + 20, 4, 0x200, EXTI_E_FORMAT, data + 20},
        {"section contents: needs 512 bytes, 0 left", data + 20, 4, 0x10000, EXTI_E_FORMAT,
         0x10000},
        {"section .rdata: its contents at 0x600 overlap those of section .data", rdata + 20, 4,
         0x600, EXTI_E_FORMAT, rdata + 20},
    };

    assert_faults(f, (struct pe_toy_opts){0}, faults, ARRAY_SIZE(faults), pe_open_toy);
    pe_toy_make(&f->toy, (struct pe_toy_opts){0});
    ptoy_put(&f->toy, data + 8, 4, 0);
    ptoy_put(&f->toy, data + 16, 4, 0);
    assert_exti(pe_open_toy(f), EXTI_E_FORMAT, &f->err, data + 8);
    assert_says(&f->err, "section .data: VirtualSize and SizeOfRawData are 0");
    pe_toy_make(&f->toy, (struct pe_toy_opts){0});
    ptoy_put(&f->toy, f->toy.optional + 36, 4, 0x200);
    f->toy.n = 0x400;
    assert_exti(pe_open_toy(f), EXTI_E_FORMAT, &f->err, 0x400);
    pe_toy_make(&f->toy, (struct pe_toy_opts){.low = true});
    ptoy_put(&f->toy, data + 20, 4, 0x800);
    assert_exti(pe_open_toy(f), EXTI_E_FORMAT, &f->err, data + 20);
    assert_says(&f->err, "not its VirtualAddress (SectionAlignment is below a page) 0x600");
}

/* Gives each directory in turn a range outside the sections. */
static void corrupt_directories_are_rejected(void **state)
{
    static const char *const names[] = {"export directory",     "import directory",
                                        "resource directory",   "exception",
                                        "certificate table",    "relocation directory",
                                        "debug directory",      "architecture directory",
                                        "global pointer",       "TLS directory",
                                        "load configuration",   "bound import directory",
                                        "import address table", "delay import directory",
                                        ".NET header",          "reserved directory"};
    static const uint32_t ranges[][2] = {
        {0x5000, 8}, {0x2fff, 2}, {0x200, 0x201}, {0xfffffff0, 0xfffffff0}, {0x1000, 0xfffff000}};
    struct pe_fixture *f = *state;

    for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
        for (size_t k = 0; k < ARRAY_SIZE(ranges) && i != IMAGE_DIRECTORY_ENTRY_SECURITY; k++) {
            size_t at;

            pe_toy_make(&f->toy, (struct pe_toy_opts){0});
            at = ptoy_directory(&f->toy, i);
            ptoy_put(&f->toy, at, 4, ranges[k][0]);
            ptoy_put(&f->toy, at + 4, 4, ranges[k][1]);
            assert_exti(pe_open_toy(f), EXTI_E_FORMAT, &f->err, at);
            assert_says(&f->err, names[i]);
            assert_says(&f->err, "are not within one section");
        }
    }
    /* Only bound imports may lie in the headers. */
    for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
        size_t at;

        if (i == IMAGE_DIRECTORY_ENTRY_SECURITY || i == IMAGE_DIRECTORY_ENTRY_BOUND_IMPORT)
            continue;
        pe_toy_make(&f->toy, (struct pe_toy_opts){0});
        at = ptoy_directory(&f->toy, i);
        ptoy_put(&f->toy, at, 4, 0x300);
        ptoy_put(&f->toy, at + 4, 4, 8);
        assert_exti(pe_open_toy(f), EXTI_E_FORMAT, &f->err, at);
    }
}

static void corrupt_certificate_tables_are_rejected(void **state)
{
    struct pe_fixture *f = *state;
    size_t at, start;

    pe_toy_make(&f->toy, (struct pe_toy_opts){.certified = true});
    at = ptoy_directory(&f->toy, IMAGE_DIRECTORY_ENTRY_SECURITY);
    start = f->toy.certificates;
    const struct pe_fault faults[] = {
        {"certificate table: its file offset 0x0", at, 4, 0, EXTI_E_FORMAT, at},
        {"certificate table: its file offset 0x404", at, 4, 0x404, EXTI_E_FORMAT, at},
        {"not a multiple of 8", at, 4, start + 4, EXTI_E_FORMAT, at},
        {"where the sections' contents end", at, 4, start - 8, EXTI_E_FORMAT, at},
        {"certificate table: needs 72 bytes", at, 4, 0x10000, EXTI_E_FORMAT, 0x10000},
        {"certificate table: needs 73 bytes, 72 left", at + 4, 4, 73, EXTI_E_FORMAT, start},
    };

    assert_faults(f, (struct pe_toy_opts){.certified = true}, faults, ARRAY_SIZE(faults),
                  pe_open_toy);
    /* A certificate table with something behind it belongs to the overlay. */
    pe_toy_make(&f->toy, (struct pe_toy_opts){.certified = true});
    f->toy.n += 8;
    assert_ok(pe_open_toy(f), &f->err);
    assert_int_equal(f->file.overlay_end, f->toy.n);
    ptoy_put(&f->toy, at + 4, 4, 0);
    assert_ok(pe_open_toy(f), &f->err);
    assert_int_equal(f->file.overlay_end, f->toy.n);
}

static void symbol_tables_outside_the_file_are_rejected(void **state)
{
    const struct pe_toy_opts o = {.symbols = true};
    struct pe_fixture *f = *state;

    pe_toy_make(&f->toy, o);
    const struct pe_fault faults[] = {
        {"COFF symbol table: needs 54 bytes", f->toy.nt + 12, 4, f->toy.n - 53, EXTI_E_FORMAT,
         f->toy.n - 53},
        {"COFF symbol table: needs 77309411310 bytes", f->toy.nt + 16, 4, 0xffffffff, EXTI_E_FORMAT,
         f->toy.symbols},
        {"COFF string table: needs 21 bytes, 20 left", f->toy.strings, 4, 21, EXTI_E_FORMAT,
         f->toy.strings},
    };

    ptoy_put(&f->toy, f->toy.nt + 16, 4, 3);
    assert_faults(f, o, faults + 1, 2, pe_open_toy);
    ptoy_put(&f->toy, f->toy.strings, 4, 20);
    ptoy_put(&f->toy, f->toy.nt + 16, 4, 3);
    ptoy_put(&f->toy, faults[0].at, 4, faults[0].value);
    assert_exti(pe_open_toy(f), EXTI_E_FORMAT, &f->err, faults[0].offset);
    assert_says(&f->err, faults[0].what);
    /* A table at the end of the file has no strings; a table with only a pointer left has no
     * symbols. */
    pe_toy_make(&f->toy, o);
    f->toy.n = f->toy.strings;
    assert_ok(pe_open_toy(f), &f->err);
    ptoy_put(&f->toy, f->toy.nt + 16, 4, 0);
    ptoy_put(&f->toy, f->toy.nt + 12, 4, f->toy.n);
    assert_ok(pe_open_toy(f), &f->err);
    assert_int_equal(f->file.symbols_at, f->toy.n);
}

static void files_for_another_system_are_rejected(void **state)
{
    struct pe_fixture *f = *state;

    for (int narrow = 0; narrow < 2; narrow++) {
        const struct pe_toy_opts o = {.narrow = narrow};
        size_t net, load_config;

        pe_toy_make(&f->toy, o);
        net = ptoy_directory(&f->toy, IMAGE_DIRECTORY_ENTRY_COM_DESCRIPTOR);
        load_config = ptoy_directory(&f->toy, IMAGE_DIRECTORY_ENTRY_LOAD_CONFIG);
        const struct pe_fault faults[] = {
            {"a .NET assembly", net, 4, 0x3000, EXTI_E_UNSUPPORTED, net},
            {"CHPEMetadataPointer is set", f->toy.load_config + (narrow ? 124 : 200), 4, 0x3000,
             EXTI_E_UNSUPPORTED, f->toy.load_config + (narrow ? 124 : 200)},
            {"load configuration: needs 16777216 bytes", f->toy.load_config, 4, 0x1000000,
             EXTI_E_FORMAT, f->toy.load_config},
            {"load configuration: RVA 0x2700 is in section .data, past its bytes in the file",
             load_config, 4, 0x2700, EXTI_E_FORMAT, load_config},
        };

        assert_faults(f, o, faults, ARRAY_SIZE(faults), pe_open_toy);
    }
}

/* ---- odd but valid files ------------------------------------------------------------------- */

static void older_load_configurations_are_read(void **state)
{
    struct pe_fixture *f = *state;

    pe_make(f, (struct pe_toy_opts){0});
    ptoy_put(&f->toy, f->toy.load_config, 4, 78);
    assert_ok(pe_open_toy(f), &f->err);
    assert_int_equal(f->file.dependent_load_flags_at, 0);
    assert_int_equal(f->file.dependent_load_flags, 0);
    ptoy_put(&f->toy, f->toy.load_config, 4, 80);
    ptoy_put(&f->toy, ptoy_directory(&f->toy, IMAGE_DIRECTORY_ENTRY_LOAD_CONFIG) + 4, 4, 64);
    assert_ok(pe_open_toy(f), &f->err);
    assert_int_equal(f->file.dependent_load_flags, 0x800);
    ptoy_put(&f->toy, ptoy_directory(&f->toy, IMAGE_DIRECTORY_ENTRY_LOAD_CONFIG), 8, 0);
    assert_ok(pe_open_toy(f), &f->err);
    assert_int_equal(f->file.dependent_load_flags_at, 0);
}

static void odd_sections_are_read(void **state)
{
    struct pe_fixture *f = *state;
    size_t data;

    pe_toy_make(&f->toy, (struct pe_toy_opts){0});
    data = ptoy_section(&f->toy, PTOY_DATA);
    ptoy_put(&f->toy, data + 8, 4, 0); /* as large as it is in the file */
    memcpy(f->toy.b + data, "12345678", 8);
    assert_ok(pe_open_toy(f), &f->err);
    assert_int_equal(f->file.sections[PTOY_DATA].virtual_size, 0x200);
    assert_string_equal(f->file.sections[PTOY_DATA].name, "12345678");
    ptoy_put(&f->toy, data + 20, 4, 0); /* nowhere in the file */
    assert_ok(pe_open_toy(f), &f->err);
    assert_int_equal(f->file.sections[PTOY_DATA].raw_size, 0);
    assert_int_equal(f->file.sections[PTOY_DATA].virtual_size, 0x200);
    /* Fewer than 16 directories. */
    ptoy_put(&f->toy, f->toy.directories - 4, 4, 2);
    assert_ok(pe_open_toy(f), &f->err);
    assert_int_equal(f->file.directories[IMAGE_DIRECTORY_ENTRY_TLS].rva, 0);
    assert_int_equal(f->file.directories[IMAGE_DIRECTORY_ENTRY_TLS].at, 0);
    /* Old tools write a SizeOfImage that is not a whole number of pages. */
    ptoy_put(&f->toy, f->toy.optional + 56, 4, 0x4001);
    assert_ok(pe_open_toy(f), &f->err);
}

/* ---- truncation, lack of memory -------------------------------------------------------------- */

/* A file cut before the end of its sections is refused and not read past its end. */
static void every_truncation_is_rejected(void **state)
{
    struct pe_fixture *f = *state;
    size_t n;

    pe_toy_make(&f->toy, (struct pe_toy_opts){0});
    n = f->toy.n;
    for (size_t i = 0; i < n; i += i < 0x400 ? 1 : 37) {
        uint8_t *copy = test_malloc(i ? i : 1);
        int rc;

        memcpy(copy, f->toy.b, i);
        f->err = (struct exti_error){0};
        rc = exti__pe_open(exti__span(copy, i), &f->file, &f->err);
        test_free(copy);
        assert_exti(rc, EXTI_E_FORMAT, &f->err, ANY_OFFSET);
    }
}

static void every_failed_allocation_is_reported(void **state)
{
    struct pe_fixture *f = *state;

    pe_toy_make(&f->toy, (struct pe_toy_opts){0});
    exti__mem_fail_after(0);
    assert_exti(pe_open_toy(f), EXTI_E_NOMEM, &f->err, ANY_OFFSET);
    assert_null(f->file.sections);
    exti__mem_fail_after(1);
    assert_ok(pe_open_toy(f), &f->err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        pe_test(every_kind_of_toy_is_read),
        pe_test(corrupt_pe_headers_are_rejected),
        pe_test(programs_for_older_systems_are_rejected),
        pe_test(overlapping_headers_are_rejected),
        pe_test(corrupt_sections_are_rejected),
        pe_test(corrupt_directories_are_rejected),
        pe_test(corrupt_certificate_tables_are_rejected),
        pe_test(symbol_tables_outside_the_file_are_rejected),
        pe_test(files_for_another_system_are_rejected),
        pe_test(older_load_configurations_are_read),
        pe_test(odd_sections_are_read),
        pe_test(every_truncation_is_rejected),
        pe_test(every_failed_allocation_is_reported),
    };

    return cmocka_run_group_tests_name("pe/pe_file", tests, NULL, NULL);
}
