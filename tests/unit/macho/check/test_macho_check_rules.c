/* The Mach-O self-check: accepts files as linkers make them, and each rule finds the fault that
 * it is there to find. */
#include "macho/check/macho_check_exports.h"
#include "macho/check/macho_check_report.h"
#include "macho/edit/macho_trie_build.h"
#include "tests/unit/macho/macho_findings.h"

#include "tests/unit/macho/macho_link.h"

/* ---- clean files ----------------------------------------------------------------------------- */

static void toys_break_no_rule(void **state)
{
    struct fixture *f = *state;
    char names[256];
    struct exti_error says;

    for (int i = 0; i < 4; i++) {
        const struct macho_toy_opts o = {.chained = i & 1, .bundle = i & 2, .naked = true};

        make_pair(f, &o);
        run_rules(f, bytes_of(&f->before), names, sizeof names, &says);
        if (*names)
            fail_msg("%s %s", names, says.message);
        assert_clean(f, NULL);
    }
}

static void linked_files_break_no_rule(void **state)
{
    static const char *const shapes[] = {
        MACHO_BUNDLE "-fixup_chains", MACHO_BUNDLE "-no_fixup_chains",
        MACHO_DYLIB "-fixup_chains -adhoc_codesign", MACHO_DYLIB "-no_fixup_chains -adhoc_codesign",
        "-bundle -fixup_chains -platform_version macos 13.0 26.0"};
    struct fixture *f;
    struct test *t = *state;
    char names[256];
    struct exti_error says;

    macho_skip_without_tools();
    f = test_alloc(t, sizeof *f);
    for (size_t i = 0; i < ARRAY_SIZE(shapes); i++)
        for (size_t k = 0; k < ARRAY_SIZE(macho_archs); k++) {
            struct exti_span file = macho_link(t, macho_archs[k], "x", shapes[i]);

            run_rules(f, file, names, sizeof names, &says);
            if (*names)
                fail_msg("%s %s: %s %s", macho_archs[k], shapes[i], names, says.message);
            assert_ok(check_spans(f, file, file, NULL), &f->err);
            assert_int_equal(f->findings, 0);
        }
}

/* ---- rules ----------------------------------------------------------------------------------- */

static void edit_platform(struct macho_toy *t)
{
    set_field(t, LC_BUILD_VERSION, 0, 8, 4, 99);
}

static void edit_no_uuid(struct macho_toy *t)
{
    set_field(t, LC_UUID, 0, 0, 4, LC_PREBIND_CKSUM);
    t->b[mtoy_find(t, LC_PREBIND_CKSUM, 0)] = LC_LINKER_OPTION;
}

static void edit_same_dylib(struct macho_toy *t)
{
    set_sdk(t, MACHO_SDK(26, 0));
    rename_dylib(t, LC_REEXPORT_DYLIB, MTOY_WEAK_LIB);
}

static void edit_same_path(struct macho_toy *t)
{
    set_sdk(t, MACHO_SDK(26, 0));
    rename_dylib(t, LC_REEXPORT_DYLIB, MTOY_WEAK_LIB);
    set_field(t, LC_REEXPORT_DYLIB, 0, 0, 4, LC_RPATH);
    set_field(t, LC_LOAD_WEAK_DYLIB, 0, 0, 4, LC_RPATH);
}

static void edit_no_dylib(struct macho_toy *t)
{
    static const uint32_t kinds[] = {LC_LOAD_DYLIB, LC_LOAD_WEAK_DYLIB, LC_REEXPORT_DYLIB};

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        set_field(t, kinds[i], 0, 0, 4, LC_RPATH);
    t->b[t->bind + 14] = 0x3e;
    t->b[t->symbols + 5 * NLIST_64_SIZE + 7] = DYNAMIC_LOOKUP_ORDINAL;
}

static void edit_text_writable(struct macho_toy *t)
{
    set_field(t, LC_SEGMENT_64, 0, 60, 4, 7);
}

static void edit_linkedit_writable(struct macho_toy *t)
{
    set_field(t, LC_SEGMENT_64, 2, 60, 4, 3);
}

static void edit_data_const(struct macho_toy *t)
{
    set_sdk(t, MACHO_SDK(26, 0));
    memcpy(t->b + mtoy_find(t, LC_SEGMENT_64, 1) + 8, "__DATA_CONST", 12);
    for (size_t i = 0; i < 4; i++)
        memcpy(t->b + mtoy_find(t, LC_SEGMENT_64, 1) + 72 + i * 80 + 16, "__DATA_CONST", 12);
}

static void edit_section_align(struct macho_toy *t)
{
    set_field(t, LC_SEGMENT_64, 1, 72 + 2 * 80 + 52, 4, 12);
}

static void edit_misplaced(struct macho_toy *t)
{
    t->b[t->starts] = 0;
    set_field(t, LC_FUNCTION_STARTS, 0, 8, 4, t->starts + 1);
    set_field(t, LC_FUNCTION_STARTS, 0, 12, 4, 7);
}

static void edit_hole(struct macho_toy *t)
{
    memset(t->b + t->starts, 0, 8);
    set_field(t, LC_FUNCTION_STARTS, 0, 12, 4, 0);
}

static void edit_empty_out_of_place(struct macho_toy *t)
{
    set_field(t, LC_DATA_IN_CODE, 0, 8, 4, 0);
}

static void edit_symbol_name(struct macho_toy *t)
{
    mtoy_put(t, t->symbols, 4, t->strings_n);
}

static void edit_symbol_section(struct macho_toy *t)
{
    t->b[t->symbols + 5] = 9;
}

static void edit_symbol_ordinal(struct macho_toy *t)
{
    t->b[t->symbols + 5 * NLIST_64_SIZE + 7] = 9;
}

static void edit_rebase_segment(struct macho_toy *t)
{
    t->b[t->rebase + 1] = 0x29;
}

static void edit_rebase_text(struct macho_toy *t)
{
    t->b[t->rebase + 1] = 0x20;
}

static void edit_rebase_type(struct macho_toy *t)
{
    t->b[t->rebase] = 0x12;
}

static void edit_rebase_opcode(struct macho_toy *t)
{
    t->b[t->rebase + 3] = 0x90;
}

static void edit_rebase_far(struct macho_toy *t)
{
    set_stream(t, t->rebase, t->rebase_n, "\x11\x21\xf9\x1f\x51", 5);
}

static void edit_bind_ordinal(struct macho_toy *t)
{
    t->b[t->bind + 14] = 0x14;
}

static void edit_bind_special(struct macho_toy *t)
{
    t->b[t->bind + 14] = 0x3c;
}

static void edit_bind_no_segment(struct macho_toy *t)
{
    SET_BIND(t, "\x11\x40_a\0\x51\x90");
}

static void edit_bind_no_ordinal(struct macho_toy *t)
{
    SET_BIND(t, "\x40_a\0\x51\x71\0\x90");
}

static void edit_bind_no_symbol(struct macho_toy *t)
{
    SET_BIND(t, "\x11\x51\x71\0\x90");
}

static void edit_bind_no_type(struct macho_toy *t)
{
    SET_BIND(t, "\x11\x40_a\0\x71\0\x90");
}

static void edit_bind_same_target(struct macho_toy *t)
{
    SET_BIND(t, "\x3e\x40_a\0\x51\x71\0\x90\x11\x90");
}

static void edit_bind_threaded(struct macho_toy *t)
{
    SET_BIND(t, "\xd0");
}

static void edit_bind_forever(struct macho_toy *t)
{
    SET_BIND(
        t, "\x11\x40_a\0\x51\x71\0\xc0\xff\xff\xff\xff\x0f\xf8\xff\xff\xff\xff\xff\xff\xff\xff\1");
}

static void edit_bind_long_number(struct macho_toy *t)
{
    SET_BIND(t, "\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f");
}

static void edit_bind_cut_number(struct macho_toy *t)
{
    memset(t->b + t->bind, 0x80, t->bind_n);
    t->b[t->bind] = 0x60;
    memset(t->b + t->bind + 1, 0, t->bind_n - 1);
    memset(t->b + t->bind + t->bind_n - 3, 0x80, 3);
    memset(t->b + t->bind, 0x11, t->bind_n - 3);
    t->b[t->bind + t->bind_n - 4] = 0x60;
}

static void edit_bind_cut_name(struct macho_toy *t)
{
    memset(t->b + t->bind, 'a', t->bind_n);
    t->b[t->bind] = 0x40;
}

static void edit_weak_ordinal(struct macho_toy *t)
{
    t->b[t->weak + 11] = 0x11;
}

static void edit_lazy_opcode(struct macho_toy *t)
{
    t->b[t->lazy + 16] = 0xb0;
}

#define CHAINED_EDIT(name, offset, width, value)                                                   \
    static void name(struct macho_toy *t)                                                          \
    {                                                                                              \
        mtoy_put(t, t->chained + (offset), (width), (value));                                      \
    }

CHAINED_EDIT(edit_chain_version, 0, 4, 1)
CHAINED_EDIT(edit_chain_starts, 4, 4, 0x10000)
CHAINED_EDIT(edit_chain_imports, 8, 4, 0x1000)
CHAINED_EDIT(edit_chain_count, 16, 4, 1u << 24)
CHAINED_EDIT(edit_chain_imports_format, 20, 4, 4)
CHAINED_EDIT(edit_chain_symbols_format, 24, 4, 1)
CHAINED_EDIT(edit_chain_segments, 32, 4, 4)
CHAINED_EDIT(edit_chain_few_segments, 32, 4, 2)
CHAINED_EDIT(edit_chain_size, 48, 4, 0x100)
CHAINED_EDIT(edit_chain_page_size, 52, 2, 0x2000)
CHAINED_EDIT(edit_chain_format, 54, 2, 3)
CHAINED_EDIT(edit_chain_segment_offset, 56, 8, 8)
CHAINED_EDIT(edit_chain_multi, 70, 2, 0x8000)
CHAINED_EDIT(edit_chain_far_start, 70, 2, 0x1001)
CHAINED_EDIT(edit_import_ordinal, 84, 1, 4)
CHAINED_EDIT(edit_import_special, 84, 1, 0xfc)
CHAINED_EDIT(edit_import_name, 86, 2, 0xffff)

static void edit_chain_end(struct macho_toy *t)
{
    mtoy_put(t, t->data + 8 * (MTOY_SLOTS - 1), 8,
             mtoy_get(t, t->data + 8 * (MTOY_SLOTS - 1), 8) | UINT64_C(0xfff) << 51);
}

static void edit_chain_import(struct macho_toy *t)
{
    t->b[t->data] = 4;
}

#define TRIE_EDIT(name, offset, value)                                                             \
    static void name(struct macho_toy *t)                                                          \
    {                                                                                              \
        t->b[t->trie + (offset)] = (value);                                                        \
    }

TRIE_EDIT(edit_trie_flags, 31, 0x40)
TRIE_EDIT(edit_trie_kind, 31, 3)
TRIE_EDIT(edit_trie_address, 34, 0x7f)
TRIE_EDIT(edit_trie_root, 16, 0)
TRIE_EDIT(edit_trie_loop, 16, 9)
TRIE_EDIT(edit_trie_far, 16, 0x7f)
TRIE_EDIT(edit_trie_size, 30, 5)
TRIE_EDIT(edit_trie_long, 30, 0x7f)
TRIE_EDIT(edit_trie_reexport, 31, 8)

static const struct {
    void (*edit)(struct macho_toy *t);
    const struct macho_toy_opts *of;
    const char *rules, *says;
} rule_faults[] = {
    {edit_platform, &opcodes, "identity,", "unknown platform 99"},
    {edit_no_uuid, &opcodes, "identity,", "validSemanticsUUID (SDK 12.0 and later)"},
    {edit_no_dylib, &opcodes, "linked dylibs,", "no needed library"},
    {edit_same_dylib, &opcodes, "linked dylibs,", MTOY_WEAK_LIB " is needed twice"},
    {edit_same_path, &opcodes, "search paths,", MTOY_WEAK_LIB " is searched twice"},
    {edit_text_writable, &opcodes, "segments,", "__TEXT: initial protection 0x7, not 0x5"},
    {edit_linkedit_writable, &opcodes, "segments,", "__LINKEDIT: initial protection 0x3, not 0x1"},
    {edit_data_const, &opcodes, "segments,", "lacks SG_READ_ONLY"},
    {edit_section_align, &opcodes, "sections,", "__data: address"},
    {edit_misplaced, &opcodes, "linkedit blobs,linkedit order,", "not aligned to 8"},
    {edit_hole, &opcodes, "linkedit order,", "the data in code are at"},
    {edit_empty_out_of_place, &opcodes, "linkedit order,", "the data in code are at 0x0"},
    {edit_symbol_name, &opcodes, "symbol entries,", "symbol 0: its name"},
    {edit_symbol_section, &opcodes, "symbol entries,", "symbol 0: section 9 of 5"},
    {edit_symbol_ordinal, &opcodes, "symbol entries,", "symbol 5: library ordinal 9 of 3"},
    {edit_rebase_segment, &opcodes, "opcodes,", "rebase opcodes + 0x2: there is no such segment"},
    {edit_rebase_text, &opcodes, "opcodes,", "the segment must be writable"},
    {edit_rebase_type, &opcodes, "opcodes,", "the type is not"},
    {edit_rebase_opcode, &opcodes, "opcodes,",
     "RebaseOpcodes::valid: rebase opcodes + 0x4: unknown"},
    {edit_rebase_far, &opcodes, "opcodes,", "outside its segment"},
    {edit_bind_ordinal, &opcodes, "opcodes,", "ordinal is out of range"},
    {edit_bind_special, &opcodes, "opcodes,", "ordinal is out of range"},
    {edit_bind_no_segment, &opcodes, "opcodes,", "no segment is set"},
    {edit_bind_no_ordinal, &opcodes, "opcodes,", "no library ordinal is set"},
    {edit_bind_no_symbol, &opcodes, "opcodes,", "no symbol is set"},
    {edit_bind_no_type, &opcodes, "opcodes,", "the type is not"},
    {edit_bind_same_target, &opcodes, "opcodes,", "so dyld ignores it"},
    {edit_bind_threaded, &opcodes, "opcodes,", "BindOpcodes::valid: bind opcodes + 0x1: unknown"},
    {edit_bind_forever, &opcodes, "opcodes,", "more slots than"},
    {edit_bind_long_number, &opcodes, "opcodes,", "more than 64 bits"},
    {edit_bind_cut_number, &opcodes, "opcodes,", "a signed number runs past"},
    {edit_bind_cut_name, &opcodes, "opcodes,", "a symbol name has no NUL"},
    {edit_weak_ordinal, &opcodes, "opcodes,", "a library ordinal in the weak stream"},
    {edit_lazy_opcode, &opcodes, "opcodes,", "not allowed in the lazy stream"},
    {edit_chain_version, &chained, "chained fixups,", "version is not 0"},
    {edit_chain_starts, &chained, "chained fixups,", "starts_offset is outside"},
    {edit_chain_imports, &chained, "chained fixups,", "the imports overlap"},
    {edit_chain_count, &chained, "chained fixups,", "imports_count is 2^24 or more"},
    {edit_chain_imports_format, &chained, "chained fixups,", "unknown imports_format"},
    {edit_chain_symbols_format, &chained, "chained fixups,", "symbols_format is not 0"},
    {edit_chain_segments, &chained, "chained fixups,", "more segments than"},
    {edit_chain_few_segments, &chained, "chained fixups,", "fewer segments than"},
    {edit_chain_size, &chained, "chained fixups,", "or overlap the imports"},
    {edit_chain_page_size, &chained, "chained fixups,", "page_size is neither"},
    {edit_chain_format, &chained, "chained fixups,", "pointer_format is not for 64-bit"},
    {edit_chain_segment_offset, &chained, "chained fixups,", "segment_offset is not"},
    {edit_chain_multi, &chained, "chained fixups,", "has several chains"},
    {edit_chain_far_start, &chained, "chained fixups,", "starts after its page"},
    {edit_import_ordinal, &chained, "chained fixups,", "library ordinal is out of range"},
    {edit_import_special, &chained, "chained fixups,", "library ordinal is out of range"},
    {edit_import_name, &chained, "chained fixups,", "outside the symbol names"},
    {edit_chain_end, &chained, "chained fixups,", "a chain leaves its page"},
    {edit_chain_import, &chained, "chained fixups,", "import does not exist"},
    {edit_trie_flags, &opcodes, "exports trie,", "unknown flags"},
    {edit_trie_kind, &opcodes, "exports trie,", "unknown flags"},
    {edit_trie_address, &opcodes, "exports trie,", "outside the image"},
    {edit_trie_root, &opcodes, "exports trie,", "leads to the root"},
    {edit_trie_loop, &opcodes, "exports trie,", "reached twice"},
    {edit_trie_far, &opcodes, "exports trie,", "a node is outside"},
    {edit_trie_size, &opcodes, "exports trie,", "size does not match its fields"},
    {edit_trie_long, &opcodes, "exports trie,", "a node's export is outside"},
    {edit_trie_reexport, &opcodes, "exports trie,", "re-export"},
};

static void each_rule_finds_its_fault_alone(void **state)
{
    struct fixture *f = *state;
    char names[256];

    for (size_t i = 0; i < ARRAY_SIZE(rule_faults); i++) {
        struct exti_error says = {.code = EXTI_OK};

        make_pair(f, rule_faults[i].of);
        rule_faults[i].edit(&f->after);
        run_rules(f, bytes_of(&f->after), names, sizeof names, &says);
        if (strcmp(names, rule_faults[i].rules) != 0)
            fail_msg("%zu: %s (%s), not %s", i, names, says.message, rule_faults[i].rules);
        assert_says(&says, rule_faults[i].says);
    }
}

static void the_original_excuses_its_own_faults(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(rule_faults); i++) {
        make_pair(f, rule_faults[i].of);
        rule_faults[i].edit(&f->after);
        assert_ok(run_checks(f, NULL), &f->err);
        assert_true(f->findings > 0);
        f->before = f->after;
        assert_clean(f, NULL);
    }
}

/* A small library may re-export many names. */
static void exports_of_several_files_are_merged(void **state)
{
    enum { COUNT = 20000, NAME = 80 };
    struct test *t = *state;
    struct macho_segment text = {.vmsize = 0x1000};
    struct macho_file file = {.text = &text, .segments = &text, .segment_count = 1};
    struct macho_check c = {.judge = {.quiet = true}};
    struct macho_export *list = test_alloc(t, COUNT * sizeof *list);
    struct macho_exports out = {.n = 0};
    struct exti_error err = {0};

    for (size_t i = 0; i < COUNT; i++) {
        list[i].name = test_format(t, "_%05zu_%0*d", i, NAME, 0);
        list[i].import_name = "";
    }
    for (size_t n = 1; n <= COUNT; n *= COUNT) {
        struct exti_buf trie = exti__buf(COUNT * NAME * 2);

        assert_ok(exti__macho_trie_build(list, n, &trie, &err), &err);
        file.pieces[MACHO_EXPORT] =
            (struct macho_piece){.present = true, .s = exti__span(trie.p, trie.n)};
        assert_ok(exti__macho_exports(&c, &file, &out, &err), &err);
        exti__buf_free(&trie);
    }
    assert_int_equal(out.n, COUNT + 1);
    exti__macho_exports_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        check_test(toys_break_no_rule),
        exti_test(linked_files_break_no_rule),
        check_test(each_rule_finds_its_fault_alone),
        check_test(the_original_excuses_its_own_faults),
        exti_test(exports_of_several_files_are_merged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
