/* What the page shift refuses, and corrupt files, which must not do more than fail. */
#include "macho/edit/macho_shift.h"
#include "macho/edit/macho_trie_build.h"
#include "tests/support/exti_test.h"

#include <string.h>

#include "tests/unit/macho/macho_shift_toy.h"

static uint64_t wrong_command(struct work *w)
{
    w->f.commands[3].cmd = LC_NOTE;
    return w->f.commands[3].at;
}

static uint64_t unknown_required_command(struct work *w)
{
    w->f.commands[4].cmd = 0x3au | LC_REQ_DYLD;
    return w->f.commands[4].at;
}

static uint64_t encryption(struct work *w)
{
    static const uint8_t command[24] = {0x2c, [4] = 24, [9] = 0x10, [16] = 1};

    w->f.commands[3].cmd = LC_ENCRYPTION_INFO_64;
    w->f.commands[3].s = exti__span(command, sizeof command);
    return w->f.commands[3].at;
}

static uint64_t short_encryption(struct work *w)
{
    static const uint8_t command[16] = {0x21, [4] = 16};

    w->f.commands[3].cmd = LC_ENCRYPTION_INFO;
    w->f.commands[3].s = exti__span(command, sizeof command);
    return ANY_OFFSET;
}

static uint64_t rebase_past_file(struct work *w)
{
    w->f.segments[1].filesize = 16;
    return w->f.segments[1].fileoff;
}

static uint64_t arm64e(struct work *w)
{
    w->f.cputype = CPU_TYPE_ARM64;
    w->f.cpusubtype = 0x80000000 | CPU_SUBTYPE_ARM64E;
    return 0;
}

static uint64_t section_type(struct work *w)
{
    toy_section(w, "__text")->flags = S_INIT_FUNC_OFFSETS + 1;
    return toy_section(w, "__text")->at;
}

static uint64_t dtrace_section(struct work *w)
{
    toy_section(w, "__text")->flags = 0xf;
    return toy_section(w, "__text")->at;
}

static uint64_t lazy_dylib_section(struct work *w)
{
    toy_section(w, "__data")->flags = S_LAZY_DYLIB_SYMBOL_POINTERS;
    return toy_section(w, "__data")->at;
}

static uint64_t debug_section(struct work *w)
{
    toy_section(w, "__data")->flags = 0x02000000;
    return toy_section(w, "__data")->at;
}

static uint64_t relocated_section(struct work *w)
{
    toy_section(w, "__data")->nreloc = 1;
    return toy_section(w, "__data")->at;
}

static uint64_t thread_starts(struct work *w)
{
    struct macho_section *s = toy_section(w, "__text");

    strcpy(s->name, "__thread_starts");
    return s->at;
}

static uint64_t segment_flags(struct work *w)
{
    w->f.segments[1].flags = 8; /* SG_PROTECTED_VERSION_1 */
    return w->f.commands[w->f.segments[1].command].at;
}

static uint64_t segment_before_text(struct work *w)
{
    w->f.segments[1].vmaddr = 0;
    return w->f.commands[w->f.segments[1].command].at;
}

static uint64_t segment_within_text(struct work *w)
{
    w->f.segments[1].vmaddr = w->f.text->vmaddr + w->f.text->vmsize - 1;
    return w->f.commands[w->f.segments[1].command].at;
}

static uint64_t segment_over_header(struct work *w)
{
    w->f.segments[1].fileoff = w->f.room_end - 1;
    return w->f.commands[w->f.segments[1].command].at;
}

static uint64_t second_text(struct work *w)
{
    strcpy(w->f.segments[1].name, "__TEXT");
    return w->f.commands[w->f.segments[1].command].at;
}

static uint64_t full_piece(struct work *w, enum macho_piece_kind kind)
{
    w->f.pieces[kind].s = (struct exti_span){.p = w->f.file.p, .n = 8, .base = 0x777};
    return 0x777;
}

static uint64_t local_relocs(struct work *w)
{
    return full_piece(w, MACHO_LOCAL_RELOCS);
}

static uint64_t external_relocs(struct work *w)
{
    return full_piece(w, MACHO_EXTERNAL_RELOCS);
}

static uint64_t modules(struct work *w)
{
    return full_piece(w, MACHO_MODULES);
}

static uint64_t hints(struct work *w)
{
    return full_piece(w, MACHO_OPTIMIZATION_HINT);
}

static uint64_t atoms(struct work *w)
{
    return full_piece(w, MACHO_ATOM_INFO);
}

static uint64_t variants(struct work *w)
{
    return full_piece(w, MACHO_FUNCTION_VARIANTS);
}

static uint64_t variant_fixups(struct work *w)
{
    return full_piece(w, MACHO_FUNCTION_VARIANT_FIXUPS);
}

static uint64_t odd_shift(struct work *w)
{
    w->b.shift = 0x1000;
    return EXTI_NO_OFFSET;
}

static uint64_t no_shift(struct work *w)
{
    w->b.shift = 0;
    return EXTI_NO_OFFSET;
}

static uint64_t linkedit_in_header(struct work *w)
{
    struct macho_segment *s = &w->f.segments[2];

    s->fileoff = w->f.room_end - 1;
    s->filesize = 0;
    return w->f.room_end;
}

static uint64_t init_offset_too_large(struct work *w)
{
    struct macho_section *s = toy_section(w, "__text");

    s->flags = S_INIT_FUNC_OFFSETS;
    memset((uint8_t *)(uintptr_t)w->f.file.p + s->offset, 0xff, 4);
    return s->offset;
}

static uint64_t section_outside(struct work *w)
{
    struct macho_section *s = toy_section(w, "__text");

    s->flags = S_INIT_FUNC_OFFSETS;
    s->offset = (uint32_t)w->f.room_end - 4;
    return s->offset;
}

static void replace(struct work *w, enum macho_piece_kind kind, const void *p, size_t n)
{
    struct exti_error err;

    assert_ok(exti__buf_append(exti__macho_piece_new(&w->b, kind, 4096), p, n, &err), &err);
}

static uint64_t function_start_overflow(struct work *w)
{
    replace(w, MACHO_FUNCTION_STARTS, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11);
    return ANY_OFFSET;
}

static uint64_t function_start_cut(struct work *w)
{
    replace(w, MACHO_FUNCTION_STARTS, "\xff\xff", 2);
    return ANY_OFFSET;
}

static uint64_t data_in_code_overflow(struct work *w)
{
    replace(w, MACHO_DATA_IN_CODE, "\xff\xff\xff\xff\1\0\1\0", 8);
    return ANY_OFFSET;
}

static uint64_t symbol_overflow(struct work *w)
{
    uint8_t entry[16] = {1, 0, 0, 0, N_SECT, 1};

    memset(entry + 8, 0xff, 8);
    replace(w, MACHO_SYMBOLS, entry, sizeof entry);
    return w->f.pieces[MACHO_SYMBOLS].s.base;
}

static void replace_trie(struct work *w, const struct macho_export *e)
{
    struct exti_error err;

    assert_ok(exti__macho_trie_build(e, 1, exti__macho_piece_new(&w->b, MACHO_EXPORT, 4096), &err),
              &err);
}

static uint64_t export_kind(struct work *w)
{
    replace_trie(w, &(struct macho_export){.name = "_x", .flags = 3, .address = 1});
    return ANY_OFFSET;
}

static uint64_t export_overflow(struct work *w)
{
    replace_trie(w, &(struct macho_export){.name = "_x", .address = UINT64_MAX});
    return ANY_OFFSET;
}

static uint64_t resolver_overflow(struct work *w)
{
    replace_trie(w, &(struct macho_export){.name = "_x",
                                           .flags = EXPORT_SYMBOL_FLAGS_STUB_AND_RESOLVER,
                                           .address = 1,
                                           .other = UINT64_MAX});
    return ANY_OFFSET;
}

static const struct refusal {
    uint64_t (*make)(struct work *w); /* returns the fault's offset */
    int code;
    const char *says;
} refusals[] = {
    {wrong_command, EXTI_E_UNSUPPORTED, "load command 0x31 cannot be moved"},
    {unknown_required_command, EXTI_E_UNSUPPORTED, "load command 0x8000003a"},
    {encryption, EXTI_E_UNSUPPORTED, "encrypted"},
    {short_encryption, EXTI_E_FORMAT, "LC_ENCRYPTION_INFO"},
    {rebase_past_file, EXTI_E_FORMAT, "offset 0x10 of segment __DATA, which has 0x10 bytes"},
    {arm64e, EXTI_E_UNSUPPORTED, "arm64e"},
    {section_type, EXTI_E_UNSUPPORTED, "__TEXT,__text of type 0x17"},
    {dtrace_section, EXTI_E_UNSUPPORTED, "type 0xf"},
    {lazy_dylib_section, EXTI_E_UNSUPPORTED, "__DATA,__data of type 0x10"},
    {debug_section, EXTI_E_UNSUPPORTED, "debugging information"},
    {relocated_section, EXTI_E_UNSUPPORTED, "relocations"},
    {thread_starts, EXTI_E_UNSUPPORTED, "__TEXT,__thread_starts"},
    {segment_flags, EXTI_E_UNSUPPORTED, "__DATA with flags 0x8"},
    {segment_before_text, EXTI_E_UNSUPPORTED, "__DATA at 0x0 does not follow __TEXT"},
    {segment_within_text, EXTI_E_UNSUPPORTED, "does not follow __TEXT"},
    {segment_over_header, EXTI_E_UNSUPPORTED, "does not follow the load commands"},
    {second_text, EXTI_E_FORMAT, "second segment __TEXT"},
    {local_relocs, EXTI_E_UNSUPPORTED, "local relocations"},
    {external_relocs, EXTI_E_UNSUPPORTED, "external relocations"},
    {modules, EXTI_E_UNSUPPORTED, "module table"},
    {hints, EXTI_E_UNSUPPORTED, "optimization hints"},
    {atoms, EXTI_E_UNSUPPORTED, "atom info"},
    {variants, EXTI_E_UNSUPPORTED, "function variants cannot"},
    {variant_fixups, EXTI_E_UNSUPPORTED, "variants' fixups"},
    {odd_shift, EXTI_E_ARG, "0x1000"},
    {no_shift, EXTI_E_ARG, "not a multiple"},
    {linkedit_in_header, EXTI_E_FORMAT, "__LINKEDIT starts before"},
    {init_offset_too_large, EXTI_E_UNSUPPORTED, "would not fit 32 bits"},
    {section_outside, EXTI_E_FORMAT, "not between the load commands and __LINKEDIT"},
    {function_start_overflow, EXTI_E_FORMAT, "first address overflows"},
    {function_start_cut, EXTI_E_FORMAT, "function starts"},
    {data_in_code_overflow, EXTI_E_UNSUPPORTED, "data in code"},
    {symbol_overflow, EXTI_E_FORMAT, "symbol 0: address overflows"},
    {export_kind, EXTI_E_UNSUPPORTED, "_x has unknown flags 0x3"},
    {export_overflow, EXTI_E_FORMAT, "_x: address overflows"},
    {resolver_overflow, EXTI_E_FORMAT, "_x: address overflows"},
};

static void shift_refuses_unknown_contents(void **state)
{
    struct test *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
        struct work w;
        uint64_t offset;
        int rc;

        start(&w, toy(t, (struct macho_toy_opts){0}), t);
        offset = refusals[i].make(&w);
        rc = exti__macho_shift(&w.b, &t->err);
        work_finish(&w);
        if (rc != refusals[i].code)
            print_message("refusal %zu, %s\n", i, refusals[i].says);
        assert_exti(rc, refusals[i].code, &t->err, offset);
        assert_says(&t->err, refusals[i].says);
        memset(&t->err, 0, sizeof t->err);
    }
}

/* A corruption of the toy's fixups: the piece, and the offset in it. */
static void shift_refuses_fixups_it_cannot_move(void **state)
{
    static const struct {
        bool chained, arm;
        enum { REBASES, BINDS, CHAINS, SLOTS } of;
        size_t at, width;
        uint64_t value;
        int code;
        const char *says;
    } rows[] = {
        {false, false, REBASES, 1, 1, 0x20, EXTI_E_UNSUPPORTED, "rebase in __TEXT"},
        {false, false, REBASES, 0, 1, 0x12, EXTI_E_UNSUPPORTED, "type 2"},
        {false, false, SLOTS, 32, 8, UINT64_MAX, EXTI_E_UNSUPPORTED, "would overflow"},
        {false, false, BINDS, 11, 1, 0x70, EXTI_E_UNSUPPORTED, "_PyFlat in __TEXT"},
        {true, true, SLOTS, 40, 8, 0xfffffffff, EXTI_E_UNSUPPORTED, "does not fit 36 bits"},
        {true, true, CHAINS, 48 + 6, 2, 1, EXTI_E_UNSUPPORTED, "format 1 cannot be moved"},
        {true, false, CHAINS, 64, 4, 0xffffffff, EXTI_E_UNSUPPORTED, "max_valid_pointer"},
    };
    struct test *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct macho_toy *m =
            toy(t, (struct macho_toy_opts){.chained = rows[i].chained, .arm = rows[i].arm});
        const size_t starts[] = {m->rebase, m->bind, m->chained, m->data};
        struct work w;
        int rc;

        mtoy_put(m, starts[rows[i].of] + rows[i].at, rows[i].width, rows[i].value);
        start(&w, m, t);
        rc = exti__macho_shift(&w.b, &t->err);
        work_finish(&w);
        if (rc != rows[i].code)
            print_message("row %zu: %s\n", i, t->err.message);
        assert_exti(rc, rows[i].code, &t->err, ANY_OFFSET);
        assert_says(&t->err, rows[i].says);
        memset(&t->err, 0, sizeof t->err);
    }
}

static void shift_refuses_a_chain_in_text(void **state)
{
    struct test *t = *state;
    struct macho_toy *m = toy(t, (struct macho_toy_opts){.chained = true, .arm = true});
    struct work w;

    /* Makes the second segment's chain the first's, with a single slot. */
    mtoy_put(m, m->chained + 32 + 4, 8, 16);
    mtoy_put(m, m->chained + 48 + 8, 8, 0);
    mtoy_put(m, m->chained + 48 + 22, 2, m->text);
    mtoy_put(m, m->text, 8, 0x1000);
    start(&w, m, t);
    assert_exti(exti__macho_shift(&w.b, &t->err), EXTI_E_UNSUPPORTED, &t->err, m->text);
    assert_says(&t->err, "chained fixup in __TEXT");
    work_finish(&w);
}

/* Any corrupt byte leads to an error or a copy, and to nothing worse. */
static void shift_survives_any_byte(void **state)
{
    static const uint8_t values[] = {0, 0x7f, 0xff};
    struct test *t = *state;

    for (int chained = 0; chained < 2; chained++) {
        struct macho_toy *m = toy(t, (struct macho_toy_opts){.chained = chained, .naked = true});

        for (size_t at = 0; at < m->n; at++) {
            const uint8_t old = m->b[at];

            if (at == m->text)
                at = m->linkedit;
            for (size_t k = 0; k < ARRAY_SIZE(values); k++) {
                struct work w = {0};

                m->b[at] = values[k];
                if (exti__macho_open(exti__span(m->b, m->n), &w.f, NULL) == 0) {
                    exti__macho_close(&w.f);
                    start(&w, m, t);
                    if (exti__macho_shift(&w.b, &t->err) == 0) {
                        struct exti_buf out = exti__buf(1 << 20);
                        (void)exti__macho_second_header(&w.b, &out, NULL);
                        exti__buf_free(&out);
                    } else {
                        assert_true(t->err.message[0]);
                        memset(&t->err, 0, sizeof t->err);
                    }
                    work_finish(&w);
                }
            }
            m->b[at] = old;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(shift_refuses_unknown_contents),
        exti_test(shift_refuses_fixups_it_cannot_move),
        exti_test(shift_refuses_a_chain_in_text),
        exti_test(shift_survives_any_byte),
    };

    return cmocka_run_group_tests_name("macho/macho_shift_refuse", tests, NULL, NULL);
}
