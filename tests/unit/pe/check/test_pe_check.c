/* Checks of handmade copies: good ones pass, and each fault is found by its step alone. */
#include "tests/unit/pe/pe_findings.h"

#define OPTS .size = sizeof(struct exti_rewrite_opts)
#define COPY_ID "toy.cp1"
#define COPY_API "py311c001.dll"
#define COPY_SOCKETS "ws2_c1.dll"

static const struct exti_needed edits[] = {{"PYTHON311", COPY_API, EXTI_NEEDED_LAST},
                                           {"ws2_32.DLL", COPY_SOCKETS, EXTI_NEEDED_LAST}};
static const struct exti_rewrite_opts asked = {OPTS, .id = COPY_ID, .needed = edits,
                                               .needed_count = 2};
static const struct exti_rewrite_opts nothing = {OPTS};

static const struct pe_toy_opts wide = {.checksum = true}, rich = {.checksum = true,
                                                                   .symbols = true,
                                                                   .certified = true,
                                                                   .bound = true};

static size_t load_flags(const struct pe_toy *t)
{
    return t->load_config + (t->o.narrow ? 54 : 78);
}

static void drop_bound(struct pe_toy *t)
{
    const size_t at = ptoy_directory(t, IMAGE_DIRECTORY_ENTRY_BOUND_IMPORT);

    memset(t->b + t->bound, 0, (size_t)ptoy_get(t, at + 4, 4));
    ptoy_put(t, at, 8, 0);
    for (size_t i = 0; i < 2; i++)
        ptoy_put(t, t->imports + i * IMPORT_DESCRIPTOR_SIZE + 4, 8, 0);
}

/* Removes what every changed copy loses. */
static void strip(struct pe_toy *t)
{
    ptoy_put(t, load_flags(t), 2, 0);
    if (t->o.bound)
        drop_bound(t);
    if (t->o.certified) {
        ptoy_put(t, ptoy_directory(t, IMAGE_DIRECTORY_ENTRY_SECURITY), 8, 0);
        t->n = t->certificates;
    }
    if (t->o.checksum)
        put_checksum(t);
}

/* A copy whose new names have the length of the old ones. */
static void make_copy(struct fixture *f, const struct pe_toy_opts *of)
{
    pe_toy_make(&f->before, *of);
    f->after = f->before;
    put_text(&f->after, f->after.name[0], COPY_API);
    put_text(&f->after, f->after.delay_name, COPY_SOCKETS);
    put_text(&f->after, f->after.id, COPY_ID);
    put_text(&f->after, f->after.forwarder, "py311c001.PyLong_Type");
    strip(&f->after);
}

/* Adds a section with the name of the first DLL. */
static void append_section(struct pe_toy *t, uint32_t flags)
{
    const size_t header = ptoy_section(t, PTOY_SECTIONS), at = (t->n + 0x1ff) / 0x200 * 0x200;
    const uint32_t rva = (uint32_t)ptoy_get(t, t->optional + 56, 4);

    memcpy(t->b + header, ".extiso", 7);
    ptoy_put(t, header + 8, 4, sizeof "a-longer-name-of-python311.dll");
    ptoy_put(t, header + 12, 4, rva);
    ptoy_put(t, header + 16, 4, 0x200);
    ptoy_put(t, header + 20, 4, at);
    ptoy_put(t, header + 36, 4, flags);
    ptoy_put(t, t->nt + 6, 2, PTOY_SECTIONS + 1);
    ptoy_put(t, t->optional + 56, 4, rva + 0x1000);
    ptoy_put(t, t->optional + 8, 4, ptoy_get(t, t->optional + 8, 4) + 0x200);
    t->n = at + 0x200;
    put_text(t, at, "a-longer-name-of-python311.dll");
    ptoy_put(t, t->imports + 12, 4, rva);
    strip(t);
}

static const struct exti_needed longer[] = {
    {"python311.dll", "a-longer-name-of-python311.dll", EXTI_NEEDED_LAST}};
static const struct exti_rewrite_opts asked_longer = {OPTS, .needed = longer, .needed_count = 1};
static const char *const given[] = {"one", "two", NULL};

/* ---- good copies ----------------------------------------------------------------------------- */

static void good_copies_pass(void **state)
{
    static const struct pe_toy_opts shapes[] = {
        {.checksum = true},
        {.narrow = true, .by_address = true},
        {.low = true},
        {.bound = true, .symbols = true, .certified = true, .checksum = true},
        {.arm = true, .certified = true},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
        make_copy(f, &shapes[i]);
        assert_clean(f, &asked);
        assert_clean(f, NULL);
    }
}

static void an_added_section_with_the_name_passes(void **state)
{
    struct fixture *f = *state;

    pe_toy_make(&f->before, (struct pe_toy_opts){.exports = given, .symbols = true});
    f->after = f->before;
    append_section(&f->after, 0x40000040);
    assert_clean(f, &asked_longer);
    assert_clean(f, NULL);
}

static void an_unchanged_file_fails_when_edits_were_asked(void **state)
{
    struct fixture *f = *state;

    pe_toy_make(&f->before, rich);
    f->after = f->before;
    assert_clean(f, &nothing);
    assert_ok(check_copy_with(f, &asked), &f->err);
    /* Import, delay import, id and forwarder. */
    assert_int_equal(f->findings, 4);
}

static void names_match_without_case_or_suffix(void **state)
{
    static const struct exti_needed chained[] = {
        {"Python311", "second.dll", EXTI_NEEDED_LAST},
        {"SECOND", COPY_API, EXTI_NEEDED_LAST},
        {"WS2_32", COPY_SOCKETS, EXTI_NEEDED_LAST},
        {"python3.dll", "never.dll", EXTI_NEEDED_LAST},
        {NULL, "added.dll", EXTI_NEEDED_LAST},
        {"removed.dll", NULL, EXTI_NEEDED_LAST},
    };
    const struct exti_rewrite_opts opts = {OPTS, .id = COPY_ID, .needed = chained,
                                           .needed_count = ARRAY_SIZE(chained)};
    struct fixture *f = *state;

    make_copy(f, &wide);
    assert_clean(f, &opts);
}

static void bytes_outside_the_plan_are_not_read(void **state)
{
    struct fixture *f = *state;
    const struct exti_request req = {.opts = &asked};
    struct exti_plan plan;

    make_copy(f, &(struct pe_toy_opts){.narrow = false});
    exti__plan_init(&plan, sizeof f->after.b);
    for (size_t i = 0; i < f->before.n; i++)
        if (f->before.b[i] != f->after.b[i])
            assert_ok(exti__plan_patch(&plan, i, f->after.b + i, 1, "byte", &f->err), &f->err);
    assert_ok(exti__plan_seal(&plan, bytes_of(&f->before), &f->err), &f->err);
    f->after.b[f->after.start[PTOY_TEXT]] ^= 1;
    f->findings = 0;
    assert_ok(exti__pe_check(bytes_of(&f->before), bytes_of(&f->after), &req, &plan,
                             note_pe_finding, f, &f->err),
              &f->err);
    assert_int_equal(f->findings, 0);
    assert_ok(check_copy_with(f, &asked), &f->err);
    assert_int_equal(f->findings, 1);
    exti__plan_free(&plan);
}

/* ---- faults ---------------------------------------------------------------------------------- */

#define EDIT(name, at, width, value)                                                               \
    static void name(struct pe_toy *t)                                                             \
    {                                                                                              \
        ptoy_put(t, (at), (width), (value));                                                       \
    }
#define DIRECTORY(i) ptoy_directory(t, IMAGE_DIRECTORY_ENTRY_##i)
#define SECTION(i, field) (ptoy_section(t, PTOY_##i) + (field))

EDIT(dos_header, 10, 1, 1)
EDIT(dos_stub, 70, 1, 1)
EDIT(timestamp, t->nt + 8, 4, 1)
EDIT(entry_point, t->optional + 16, 4, 0x1010)
EDIT(image_base, t->optional + 24, 8, 0x190000000)
EDIT(subsystem, t->optional + 68, 2, 3)
EDIT(no_dynamic_base, t->optional + 70, 2, 0x100)
EDIT(stack_size, t->optional + 72, 8, 0x1000)
EDIT(data_size, t->optional + 8, 4, 0x7000000)
EDIT(header_size, t->optional + 60, 4, 0x800)
EDIT(header_slack, t->headers_end - 1, 1, 1)
EDIT(symbols_at, t->nt + 12, 4, t->symbols + 18)
EDIT(resources, DIRECTORY(RESOURCE), 8, (uint64_t)16 << 32 | 0x2000)
EDIT(lost_exports, DIRECTORY(EXPORT), 8, 0)
EDIT(section_name, SECTION(TEXT, 1), 1, 'T')
EDIT(section_writable, SECTION(TEXT, 39), 1, 0xe0)
EDIT(section_lines, SECTION(TEXT, 28), 4, 9)
EDIT(code_grown, SECTION(TEXT, 8), 4, 0x180)
EDIT(section_shrunk, SECTION(DATA, 8), 4, 0x80)
EDIT(other_name, t->name[1] + 1, 1, 'e')
EDIT(not_renamed, t->imports + 12, 4, ptoy_get(t, t->imports + 32, 4))
EDIT(other_addresses, t->imports + 16, 4, ptoy_get(t, t->imports + 36, 4))
EDIT(other_symbol, t->symbol_name + 2, 1, 'p')
EDIT(other_hint, t->symbol_name, 1, 3)
EDIT(other_ordinal, t->lookup[1], 1, 13)
EDIT(delay_timestamp, t->delay + 28, 4, 77)
EDIT(delay_unload, t->delay + 24, 4, 77)
EDIT(import_timestamp, t->imports + 4, 4, 77)
EDIT(forwarder_chain, t->imports + 8, 4, 77)
EDIT(bound_directory, DIRECTORY(BOUND_IMPORT), 8, (uint64_t)8 << 32 | 0x200)
EDIT(old_id, t->id, 7, 0x6479702e796f74)
EDIT(lost_id, t->exports + 12, 4, 0)
EDIT(export_base, t->exports + 16, 4, 1)
EDIT(export_name, t->id + 9, 1, 'x')
EDIT(export_slot, t->ordinals + 2, 2, 2)
EDIT(export_place, t->functions, 4, 0x1020)
EDIT(forwarder_place, t->functions + 16, 4, 0x1020)
EDIT(forwarder_symbol, t->forwarder + 12, 1, 'Y')
EDIT(forwarder_library, t->forwarder, 1, 'q')
EDIT(load_flags_kept, load_flags(t), 2, 0x800)
EDIT(debug_data, t->debug + 24, 4, 77)
EDIT(code, t->start[PTOY_TEXT] + 3, 1, 0x90)
EDIT(text_padding, t->start[PTOY_TEXT] + 0x1ff, 1, 1)
EDIT(addresses, t->iat[0], 1, 1)
EDIT(tls, t->tls + 4 * t->word, 1, 1)
EDIT(codeview, t->codeview + 5, 1, 1)
EDIT(relocations, t->start[PTOY_RELOC] + 9, 1, 0)
EDIT(symbol_table, t->symbols + 2, 1, 1)

static void one_import(struct pe_toy *t)
{
    memset(t->b + t->imports + IMPORT_DESCRIPTOR_SIZE, 0, IMPORT_DESCRIPTOR_SIZE);
}

static void stub_gone(struct pe_toy *t)
{
    ptoy_put(t, DOS_E_LFANEW, 4, t->nt + 8);
    memmove(t->b + t->nt + 8, t->b + t->nt, t->headers_end - t->nt - 8);
}

static void cut_short(struct pe_toy *t)
{
    t->n -= 0x10;
}

static void longer_file(struct pe_toy *t)
{
    t->n += 0x10;
}

static void signed_still(struct pe_toy *t)
{
    ptoy_put(t, DIRECTORY(SECURITY), 8, (uint64_t)0x48 << 32 | t->certificates);
    t->n += 0x48;
}

static void bound_bytes(struct pe_toy *t)
{
    struct pe_toy old;

    pe_toy_make(&old, t->o);
    memcpy(t->b + t->bound, old.b + t->bound, 48);
}

static void stray_name(struct pe_toy *t)
{
    put_text(t, t->id, "a");
    put_text(t, t->id + 3, "b");
}

static void wrong_checksum(struct pe_toy *t)
{
    ptoy_put(t, t->optional + 64, 4, 77);
}

static const struct {
    void (*edit)(struct pe_toy *t);
    const struct pe_toy_opts *of;
    const char *steps, *says;
} step_faults[] = {
    {dos_header, &wide, "header fields,", "MS-DOS header"},
    {dos_stub, &wide, "header fields,", "MS-DOS stub"},
    {timestamp, &wide, "header fields,", "TimeDateStamp"},
    {entry_point, &wide, "header fields,", "AddressOfEntryPoint"},
    {image_base, &wide, "header fields,", "optional header"},
    {subsystem, &wide, "header fields,", "Subsystem"},
    {no_dynamic_base, &wide, "header fields,", "DllCharacteristics 0x100, not 0x160"},
    {stack_size, &wide, "header fields,", "optional header"},
    {data_size, &wide, "header fields,", "SizeOfInitializedData"},
    {header_size, &wide, "header fields,", "SizeOfHeaders 0x800"},
    {header_slack, &wide, "header fields,", "behind the section table"},
    {symbols_at, &rich, "header fields,", "PointerToSymbolTable"},
    {stub_gone, &wide, "header fields,", "PE header at 0x88"},
    {resources, &wide, "directory table,", "directory 2"},
    {lost_exports, &wide, "directory table,id,content,", "directory 0"},
    {section_name, &wide, "section table,", "section .Text"},
    {section_writable, &wide, "section table,", "characteristics 0xe0000020"},
    {section_lines, &wide, "section table,", "section header"},
    {code_grown, &wide, "section table,content,", "grown, with characteristics 0x60000020"},
    {section_shrunk, &wide, "section table,", "section .data: 0x80 bytes"},
    {other_name, &wide, "needed,content,", "import KeRNEL32.dll: not KERNEL32.dll"},
    {not_renamed, &wide, "needed,content,", "import KERNEL32.dll: not " COPY_API},
    {other_addresses, &wide, "needed,content,", "other tables"},
    {one_import, &wide, "needed,content,", "2 imports and delay imports, not 3"},
    {other_symbol, &wide, "needed,content,", "symbol 0 is not the original's"},
    {other_hint, &wide, "needed,content,", "symbol 0 is not the original's"},
    {other_ordinal, &wide, "needed,content,", "symbol 0 is not the original's"},
    {delay_timestamp, &wide, "needed,", "TimeDateStamp 0x4d"},
    {delay_unload, &wide, "content,", ".rdata: byte 0x4d"},
    {import_timestamp, &wide, "bound imports,", "TimeDateStamp 0x4d"},
    {forwarder_chain, &rich, "bound imports,", "ForwarderChain 0x4d"},
    {bound_directory, &wide, "bound imports,", "0x8 bytes at 0x200, not none"},
    {bound_bytes, &rich, "bound imports,", "still there"},
    {old_id, &wide, "id,", "called \"toy.pyd\", not \"" COPY_ID "\""},
    {lost_id, &wide, "id,content,", "called \"\""},
    {export_base, &wide, "exported symbols,content,", "other fields"},
    {export_name, &wide, "exported symbols,content,", "exported name 0"},
    {export_slot, &wide, "exported symbols,content,", "function 2, not 0"},
    {export_place, &wide, "exported symbols,content,", "at 0x1020"},
    {forwarder_place, &wide, "exported symbols,content,", "no forwarder"},
    {forwarder_symbol, &wide, "forwarders,", "of python311.PyLong_Type"},
    {forwarder_library, &wide, "forwarders,", "forwarder qy311c001.PyLong_Type"},
    {load_flags_kept, &wide, "load flags,", "DependentLoadFlags 0x800"},
    {debug_data, &wide, "debug data,content,", "debug entry 0: PointerToRawData 0x4d"},
    {signed_still, &rich, "signature,end,", "certificates"},
    {code, &wide, "content,", ".text: byte 0x90, not 0xc3"},
    {text_padding, &wide, "content,", ".text: byte 0x01, not 0x00"},
    {addresses, &wide, "content,", "import address table: byte 0x01"},
    {tls, &wide, "content,", "TLS directory"},
    {codeview, &wide, "content,", ".rdata: byte 0x01"},
    {relocations, &wide, "content,", "relocations: byte 0x00"},
    {symbol_table, &rich, "content,", "behind the sections"},
    {stray_name, &wide, "id,content,", "called \"a\""},
    {cut_short, &wide, "content,", "not at least"},
    {longer_file, &wide, "end,", "bytes, not"},
};

static void each_step_finds_its_fault_alone(void **state)
{
    struct fixture *f = *state;
    const struct exti_request req = {.opts = &asked};
    bool wrong = false;

    for (size_t i = 0; i < ARRAY_SIZE(step_faults); i++) {
        make_copy(f, step_faults[i].of);
        step_faults[i].edit(&f->after);
        run_steps(f, &req, bytes_of(&f->before), bytes_of(&f->after));
        if (strcmp(f->names, step_faults[i].steps) == 0 &&
            strstr(f->first.message, step_faults[i].says))
            continue;
        print_error("%zu: %s (%s), not %s (%s)\n", i, f->names, f->first.message,
                    step_faults[i].steps, step_faults[i].says);
        wrong = true;
    }
    assert_false(wrong);
}

static void a_wrong_checksum_excuses_no_other(void **state)
{
    struct fixture *f = *state;

    make_copy(f, &wide);
    wrong_checksum(&f->before);
    assert_clean(f, &asked);
    wrong_checksum(&f->after);
    assert_ok(check_copy_with(f, &asked), &f->err);
    assert_int_equal(f->findings, 1);
    assert_says(&f->first, "CheckSum 0x4d");
    ptoy_put(&f->after, f->after.optional + 64, 4, 0);
    assert_clean(f, &asked);
}

static void relocations_must_miss_new_names(void **state)
{
    struct fixture *f = *state;
    const struct exti_request req = {.opts = &asked};
    struct pe_toy *both[] = {&f->before, &f->after};

    make_copy(f, &wide);
    for (size_t i = 0; i < 2; i++) {
        struct pe_toy *t = both[i];
        const uint32_t rva = t->rva[PTOY_RDATA] + (uint32_t)(t->delay_name - t->start[PTOY_RDATA]);
        size_t at = t->start[PTOY_RELOC];

        while (ptoy_get(t, at, 4) != t->rva[PTOY_RDATA])
            at += (size_t)ptoy_get(t, at + 4, 4);
        ptoy_put(t, at + 8, 2, (rva & 0xfff) | 10u << 12);
        put_checksum(t);
    }
    run_steps(f, &req, bytes_of(&f->before), bytes_of(&f->after));
    assert_string_equal(f->names, "relocated names,");
    assert_says(&f->first, "in a name that the rewrite wrote");
}

static void added_sections_are_checked(void **state)
{
    struct fixture *f = *state;
    const struct exti_request req = {.opts = &asked_longer};
    static const struct {
        uint32_t flags;
        size_t field;
        uint32_t value;
        const char *steps;
    } faults[] = {
        {0xc0000040, 36, 0xc0000040, "added section,"},
        {0x60000020, 36, 0x60000020, "added section,"},
        {0x40000040, 8, 0, "added section,content,"},
        {0x40000040, 8, 0x300, "added section,"},
        {0x40000040, 0, 0x65786523, "added section,"},
        {0x40000040, 24, 8, "added section,"},
        {0x40000040, 8, 0x30, "content,"},
        {0x40000040, 16, 0x400, "header fields,end,"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
        pe_toy_make(&f->before, (struct pe_toy_opts){.exports = given});
        f->after = f->before;
        append_section(&f->after, faults[i].flags);
        ptoy_put(&f->after, ptoy_section(&f->after, PTOY_SECTIONS) + faults[i].field, 4,
                 faults[i].value);
        run_steps(f, &req, bytes_of(&f->before), bytes_of(&f->after));
        if (strcmp(f->names, faults[i].steps) != 0)
            fail_msg("%zu: %s (%s), not %s", i, f->names, f->first.message, faults[i].steps);
    }
}

static void overwritten_bytes_are_found(void **state)
{
    struct fixture *f = *state;
    const struct exti_request req = {.opts = &asked};

    make_copy(f, &wide);
    f->before.b[f->before.start[PTOY_RDATA] + f->before.virtual_size[PTOY_RDATA] + 2] = 0xaa;
    put_checksum(&f->before);
    ptoy_put(&f->after, ptoy_section(&f->after, PTOY_RDATA) + 8, 4,
             f->after.virtual_size[PTOY_RDATA] + 8);
    run_steps(f, &req, bytes_of(&f->before), bytes_of(&f->after));
    assert_string_equal(f->names, "content,");
    assert_says(&f->first, "section .rdata: written over 0xaa");

    pe_toy_make(&f->before, (struct pe_toy_opts){.exports = given});
    f->after = f->before;
    append_section(&f->after, 0x40000040);
    f->before.b[ptoy_section(&f->before, PTOY_SECTIONS) + 5] = 0xaa;
    run_steps(f, &req, bytes_of(&f->before), bytes_of(&f->after));
    assert_contains(f->names, "header fields,");
    assert_says(&f->first, "where the original has 0xaa");
}

/* ---- symbols of the new library -------------------------------------------------------------- */

static void check_with(struct fixture *f, const struct pe_toy_opts *library)
{
    static struct pe_toy provider;
    const struct exti_rewrite_opts opts = {OPTS, .needed = edits, .needed_count = 1,
                                           .bind_file = "python"};
    struct exti_span bind;
    const struct exti_request req = {.opts = &opts, .bind = &bind, .bind_count = 1};

    pe_toy_make(&provider, *library);
    bind = bytes_of(&provider);
    put_text(&f->after, f->after.delay_name, "WS2_32.dll");
    put_text(&f->after, f->after.id, PTOY_ID);
    put_checksum(&f->after);
    assert_ok(check_spans(f, bytes_of(&f->before), bytes_of(&f->after), &req), &f->err);
}

static void symbols_must_be_in_the_new_library(void **state)
{
    static const char *const all[] = {"PyModule_Create2", "Py_BuildValue", NULL};
    static const char *const one[] = {"PyModule_Create2", "Py_BuildValu", NULL};
    struct fixture *f = *state;

    make_copy(f, &wide);
    check_with(f, &(struct pe_toy_opts){.exports = all});
    assert_int_equal(f->findings, 0);
    check_with(f, &(struct pe_toy_opts){.exports = one});
    assert_int_equal(f->findings, 1);
    assert_says(&f->first, "has no symbol Py_BuildValue");
    make_copy(f, &(struct pe_toy_opts){.by_ordinal = true, .checksum = true});
    check_with(f, &(struct pe_toy_opts){.exports = all});
    assert_int_equal(f->findings, 1);
    assert_says(&f->first, "by ordinal 77");
}

/* ---- files that cannot be compared ----------------------------------------------------------- */

static void files_that_are_no_library_are_reported(void **state)
{
    struct fixture *f = *state;

    make_copy(f, &wide);
    f->after.b[0] = 'X';
    assert_ok(check_copy_with(f, &asked), &f->err);
    assert_int_equal(f->findings, 1);
    assert_says(&f->first, "not a sound DLL");

    make_copy(f, &wide);
    f->after.n = 40;
    assert_ok(check_copy_with(f, &asked), &f->err);
    assert_int_equal(f->findings, 1);

    make_copy(f, &wide);
    f->before.b[0] = 'X';
    assert_exti(check_copy_with(f, &asked), EXTI_E_FORMAT, &f->err, 0);
    assert_int_equal(f->findings, 0);

    make_copy(f, &wide);
    pe_toy_make(&f->after, (struct pe_toy_opts){.narrow = true});
    assert_ok(check_copy_with(f, NULL), &f->err);
    assert_int_equal(f->findings, 1);
    assert_says(&f->first, "optional header of kind 0x10b, not 0x20b");

    make_copy(f, &wide);
    for (size_t i = 0; i < PTOY_SECTIONS; i++)
        ptoy_put(&f->after, ptoy_section(&f->after, i) + 20, 4, 0x200);
    assert_ok(check_copy_with(f, &asked), &f->err);
    assert_int_equal(f->findings, 1);
    assert_says(&f->first, "the first section is at 0x200");
}

static int stop_at_once(void *user, const struct exti_error *finding)
{
    note_pe_finding(user, finding);
    return 1;
}

static void a_report_can_end_the_check(void **state)
{
    struct fixture *f = *state;
    const struct exti_request req = {.opts = &asked};

    pe_toy_make(&f->before, wide);
    f->after = f->before;
    assert_ok(exti__pe_check(bytes_of(&f->before), bytes_of(&f->after), &req, NULL, stop_at_once, f,
                             &f->err),
              &f->err);
    assert_int_equal(f->findings, 1);
}

static void lack_of_memory_is_reported(void **state)
{
    struct fixture *f = *state;
    int rc = EXTI_E_NOMEM;

    make_copy(f, &rich);
    wrong_checksum(&f->before);
    for (long i = 0; rc; i++) {
        exti__mem_fail_after(i);
        rc = check_copy_with(f, &asked);
        exti__mem_fail_after(-1);
        if (rc)
            assert_exti(rc, EXTI_E_NOMEM, &f->err, ANY_OFFSET);
        assert_true(i < 100);
    }
    assert_int_equal(f->findings, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        check_test(good_copies_pass),
        check_test(an_added_section_with_the_name_passes),
        check_test(an_unchanged_file_fails_when_edits_were_asked),
        check_test(names_match_without_case_or_suffix),
        check_test(bytes_outside_the_plan_are_not_read),
        check_test(each_step_finds_its_fault_alone),
        check_test(a_wrong_checksum_excuses_no_other),
        check_test(relocations_must_miss_new_names),
        check_test(added_sections_are_checked),
        check_test(overwritten_bytes_are_found),
        check_test(symbols_must_be_in_the_new_library),
        check_test(files_that_are_no_library_are_reported),
        check_test(a_report_can_end_the_check),
        check_test(lack_of_memory_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
