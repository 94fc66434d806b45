/* Rules of the PE check: toys pass, and each fault is found by its rule alone. */
#include "tests/unit/pe/pe_findings.h"

static const struct pe_toy_opts shapes[] = {
    {.narrow = false},
    {.arm = true},
    {.narrow = true},
    {.low = true},
    {.narrow = true, .by_address = true},
    {.no_lookup = true},
    {.bound = true},
    {.symbols = true},
    {.certified = true, .symbols = true, .checksum = true},
    {.full = true, .room = 8},
    {.by_ordinal = true},
};

static void toys_break_no_rule(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
        pe_toy_make(&f->before, shapes[i]);
        run_rules(f, bytes_of(&f->before), bytes_of(&f->before));
        if (*f->names)
            fail_msg("%zu: %s %s", i, f->names, f->first.message);
        f->after = f->before;
        assert_clean(f, NULL);
    }
}

/* ---- faults ---------------------------------------------------------------------------------- */

#define EDIT(name, at, width, value)                                                               \
    static void name(struct pe_toy *t)                                                             \
    {                                                                                              \
        ptoy_put(t, (at), (width), (value));                                                       \
    }
#define DIRECTORY(i) ptoy_directory(t, IMAGE_DIRECTORY_ENTRY_##i)
#define SECTION(i, field) (ptoy_section(t, PTOY_##i) + (field))

static void odd_header(struct pe_toy *t)
{
    memmove(t->b + t->nt + 2, t->b + t->nt, t->headers_end - t->nt - 2);
    ptoy_put(t, DOS_E_LFANEW, 4, t->nt + 2);
}

EDIT(unknown_machine, t->nt + 4, 2, 0x1c4)
EDIT(wrong_width, t->nt + 4, 2, IMAGE_FILE_MACHINE_I386)
EDIT(many_directories, t->directories - 4, 4, 17)
EDIT(no_library, t->nt + 22, 2, IMAGE_FILE_EXECUTABLE_IMAGE)
EDIT(no_relocations, t->nt + 22, 2,
     IMAGE_FILE_RELOCS_STRIPPED | IMAGE_FILE_DLL | IMAGE_FILE_EXECUTABLE_IMAGE)
EDIT(unsigned_file, t->optional + 70, 2, 0x1e0)
EDIT(small_file_alignment, t->optional + 36, 4, 0x100)
EDIT(odd_section_alignment, t->optional + 32, 4, 0x1800)
EDIT(low_section_alignment, t->optional + 32, 4, 0x400)
EDIT(no_sections, t->nt + 6, 2, 0)
EDIT(short_headers, t->optional + 60, 4, 0x200)
EDIT(long_headers, t->optional + 60, 4, 0x600)
EDIT(gap_of_sections, SECTION(DATA, 12), 4, t->rva[PTOY_DATA] + 0x1000)
EDIT(odd_section, SECTION(RELOC, 12), 4, t->rva[PTOY_RELOC] + 0x100)
EDIT(small_image, t->optional + 56, 4, 0x3000)
EDIT(odd_raw, SECTION(TEXT, 16), 4, 0x1f0)
EDIT(far_raw, SECTION(RELOC, 16), 4, 0x20000)
EDIT(common_raw, SECTION(DATA, 20), 4, 0x400)
EDIT(directory_nowhere, DIRECTORY(RESOURCE), 8, 0x1000000f000)
EDIT(directory_across, DIRECTORY(RESOURCE), 8, (uint64_t)0x1100 << 32 | 0x1010)
EDIT(odd_certificates, DIRECTORY(SECURITY), 8, (uint64_t)8 << 32 | 0x404)
EDIT(import_nowhere, DIRECTORY(IMPORT), 4, 0xf000)
EDIT(import_no_name, t->imports + 12, 4, 0xf000)
EDIT(import_odd_name, t->name[0] + 3, 1, 7)
EDIT(import_long_table, t->imports, 4, 0xf000)
EDIT(import_no_table, t->imports + 16, 4, 0xf000)
EDIT(import_no_symbol, t->lookup[0], 4, 0xf000)
EDIT(delay_nowhere, DIRECTORY(DELAY_IMPORT), 4, 0xf000)
EDIT(delay_no_name, t->delay + 4, 4, 0xf000)
EDIT(delay_no_handle, t->delay + 8, 4, 0xf000)
EDIT(delay_no_addresses, t->delay + 12, 4, 0xf000)
EDIT(delay_no_table, t->delay + 16, 4, 0)
EDIT(export_nowhere, DIRECTORY(EXPORT), 4, 0xf000)
EDIT(export_no_table, t->exports + 28, 4, 0xf000)
EDIT(export_many, t->exports + 20, 4, 0x7fffffff)
EDIT(export_no_name, t->exports + 12, 4, 0xf000)
EDIT(export_outside, t->functions, 4, 0xf0000)
EDIT(export_unsorted, t->names, 4, ptoy_get(t, t->names + 12, 4))
EDIT(export_lost_name, t->names, 4, 0xf0000)
EDIT(export_no_function, t->ordinals, 2, 5)
EDIT(forwarder_no_dot, t->forwarder + 9, 1, '_')
EDIT(forwarder_more_dots, t->forwarder + 5, 1, '.')
EDIT(forwarder_no_symbol, t->forwarder + 10, 1, 0)
EDIT(forwarder_no_library, t->functions + 16, 4, ptoy_get(t, t->functions + 16, 4) + 9)
EDIT(forwarder_outlasts, DIRECTORY(EXPORT) + 4, 4, t->export_end - t->exports - 1)
EDIT(reloc_size, t->start[PTOY_RELOC] + 4, 4, 0x400)
EDIT(reloc_odd_size, t->start[PTOY_RELOC] + 4, 4, 10)
EDIT(reloc_kind, t->start[PTOY_RELOC] + 9, 1, 0x50)
EDIT(reloc_outside, t->start[PTOY_RELOC], 4, 0x80000)
EDIT(tls_nowhere, DIRECTORY(TLS), 4, t->rva[PTOY_DATA] + 0x700)
EDIT(tls_backwards, t->tls + t->word, t->word, 0)
EDIT(tls_no_index, t->tls + 2 * t->word, t->word, t->base)
EDIT(tls_no_callbacks, t->tls + 3 * t->word, t->word, t->base)
EDIT(config_size, t->load_config, 4, 0x8000)
EDIT(debug_size, DIRECTORY(DEBUG) + 4, 4, 29)
EDIT(debug_moved, t->debug + 28 + 24, 4, t->codeview + 4)
EDIT(debug_outside, t->debug + 28 + 24, 4, 0xf0000)
EDIT(symbols_outside, t->nt + 12, 4, t->n - 8)
EDIT(symbols_no_names, t->strings, 4, 0x1000)
EDIT(wrong_checksum, t->optional + 64, 4, 0x1234)

static const struct pe_toy_opts wide = {.narrow = false}, low = {.low = true},
                                symbols = {.symbols = true};

static void low_moved(struct pe_toy *t)
{
    ptoy_put(t, SECTION(TEXT, 20), 4, 0x600);
    ptoy_put(t, SECTION(DATA, 20), 4, 0x400);
}

static const struct {
    void (*edit)(struct pe_toy *t);
    const struct pe_toy_opts *of;
    const char *rules, *says;
} rule_faults[] = {
    {odd_header, &wide, "machine,", "not a multiple of 4"},
    {unknown_machine, &wide, "machine,", "machine 0x1c4"},
    {wrong_width, &wide, "machine,", "machine 0x14c has an optional header of kind 0x20b"},
    {many_directories, &wide, "machine,", "17 directories"},
    {no_library, &wide, "library,", "not those of a DLL"},
    {no_relocations, &wide, "library,", "no relocations"},
    {unsigned_file, &wide, "library,", "requires a signature"},
    {small_file_alignment, &wide, "alignment,", "FileAlignment 0x100"},
    {odd_section_alignment, &wide, "alignment,section addresses,image size,",
     "SectionAlignment 0x1800, not a power"},
    {low_section_alignment, &wide, "alignment,section addresses,image size,", "less than a page"},
    {low_moved, &low, "alignment,", "at 0x600 in the file, not at 0x400"},
    {no_sections, &wide,
     "headers,directories,imports,delay imports,exports,TLS,load configuration,"
     "debug directory,",
     "0 sections"},
    {short_headers, &wide, "headers,", "SizeOfHeaders 0x200: the section table ends"},
    {long_headers, &wide, "headers,", "where the headers are"},
    {gap_of_sections, &wide, "section addresses,directories,exports,",
     "where the previous one ends"},
    {odd_section, &wide, "section addresses,directories,", "not a multiple of SectionAlignment"},
    {small_image, &wide, "image size,relocations,", "SizeOfImage 0x3000"},
    {odd_raw, &wide, "section bytes,", "0x1f0 bytes"},
    {far_raw, &wide, "section bytes,", "in a file of"},
    {common_raw, &wide, "section bytes,", "share bytes"},
    {directory_nowhere, &wide, "directories,", "directory 2"},
    {directory_across, &wide, "directories,", "and in one section"},
    {odd_certificates, &wide, "directories,", "certificates"},
    {import_nowhere, &wide, "directories,imports,", "directory 1"},
    {import_no_name, &wide, "imports,", "import 0: no name"},
    {import_odd_name, &wide, "imports,", "import 0: no name"},
    {import_long_table, &wide, "imports,", "symbol 0 of its table"},
    {import_no_table, &wide, "imports,", "2 addresses at 0xf000"},
    {import_no_symbol, &wide, "imports,", "symbol 0 of its table"},
    {delay_nowhere, &wide, "directories,delay imports,", "directory 13"},
    {delay_no_name, &wide, "delay imports,", "delay import 0: no name"},
    {delay_no_handle, &wide, "delay imports,", "module handle"},
    {delay_no_addresses, &wide, "delay imports,", "2 addresses at 0xf000"},
    {delay_no_table, &wide, "delay imports,", "symbol 0 of its table"},
    {export_nowhere, &wide, "directories,exports,", "directory 0"},
    {export_no_table, &wide, "exports,", "tables of 5 functions"},
    {export_many, &wide, "exports,", "tables of 2147483647 functions"},
    {export_no_name, &wide, "exports,", "no name of at most"},
    {export_outside, &wide, "exports,", "where no section is"},
    {export_unsorted, &wide, "exports,", "toy_alias does not come after toy_state"},
    {export_lost_name, &wide, "exports,", "exported name 0: not in the file"},
    {export_no_function, &wide, "exports,", "function 5 of 5"},
    {forwarder_no_dot, &wide, "exports,", "not a library without a dot"},
    {forwarder_more_dots, &wide, "exports,", "not a library without a dot"},
    {forwarder_no_symbol, &wide, "exports,", "not a library without a dot"},
    {forwarder_no_library, &wide, "exports,", "not a library without a dot"},
    {forwarder_outlasts, &wide, "exports,", "does not end in the export directory"},
    {reloc_size, &wide, "relocations,", "relocations"},
    {reloc_odd_size, &wide, "relocations,", "relocations"},
    {reloc_kind, &wide, "relocations,", "unknown kind"},
    {reloc_outside, &wide, "relocations,", "outside the image"},
    {tls_nowhere, &wide, "directories,TLS,", "directory 9"},
    {tls_backwards, &wide, "TLS,", "is in no section"},
    {tls_no_index, &wide, "TLS,", "its index"},
    {tls_no_callbacks, &wide, "TLS,", "its callbacks"},
    {config_size, &wide, "load configuration,", "not entirely in the file"},
    {debug_size, &wide, "debug directory,", "0x1d bytes"},
    {debug_moved, &wide, "debug directory,", "PointerToRawData"},
    {debug_outside, &wide, "debug directory,", "in a file of"},
    {symbols_outside, &symbols, "COFF symbols,", "2 of them"},
    {symbols_no_names, &symbols, "COFF symbols,", "2 of them"},
    {wrong_checksum, &wide, "checksum,", "CheckSum 0x1234"},
};

static void each_rule_finds_its_fault_alone(void **state)
{
    struct fixture *f = *state;
    bool wrong = false;

    for (size_t i = 0; i < ARRAY_SIZE(rule_faults); i++) {
        pe_toy_make(&f->before, *rule_faults[i].of);
        f->after = f->before;
        rule_faults[i].edit(&f->after);
        run_rules(f, bytes_of(&f->before), bytes_of(&f->after));
        if (strcmp(f->names, rule_faults[i].rules) == 0 &&
            strstr(f->first.message, rule_faults[i].says))
            continue;
        print_error("%zu: %s (%s), not %s (%s)\n", i, f->names, f->first.message,
                    rule_faults[i].rules, rule_faults[i].says);
        wrong = true;
    }
    assert_false(wrong);
}

/* As far as the reader accepts the original. */
static void the_original_excuses_its_own_faults(void **state)
{
    struct fixture *f = *state;
    size_t taken = 0;

    for (size_t i = 0; i < ARRAY_SIZE(rule_faults); i++) {
        int rc;

        pe_toy_make(&f->before, *rule_faults[i].of);
        f->after = f->before;
        rule_faults[i].edit(&f->after);
        assert_ok(check_copy_with(f, NULL), &f->err);
        if (!f->findings)
            fail_msg("%zu: nothing is found", i);
        f->before = f->after;
        rc = check_copy_with(f, NULL);
        if (!rc && f->findings)
            fail_msg("%zu: %s", i, f->first.message);
        taken += !rc;
    }
    assert_true(taken > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        check_test(toys_break_no_rule),
        check_test(each_rule_finds_its_fault_alone),
        check_test(the_original_excuses_its_own_faults),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
