/* The page shift on a hand-made file: each kind of address in its tables and commands. */
#include "macho/edit/macho_chained_write.h"
#include "macho/edit/macho_trie_build.h"
#include "tests/support/exti_test.h"

#include <string.h>

#include "tests/unit/macho/macho_shift_toy.h"
#include "tests/unit/macho/macho_shift_work.h"

static void put_value(uint8_t *p, size_t width, uint64_t v)
{
    for (size_t i = 0; i < width; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

static uint64_t get_value(const uint8_t *p, size_t width)
{
    uint64_t v = 0;

    for (size_t i = 0; i < width; i++)
        v |= (uint64_t)p[i] << 8 * i;
    return v;
}

/* The bytes of the copy's body from the toy's slice offset `at`. */
static uint64_t in_body(const struct work *w, size_t at)
{
    return get_value(w->b.body.p + (at - w->f.room_end), 8);
}

/* ---- what moves ------------------------------------------------------------------------------ */

/* The toy's image starts at MTOY_BASE, so the two pointer formats hold different values. */
static void shift_moves_pointers(void **state)
{
    static const struct macho_toy_opts kinds[] = {
        {.chained = false}, {.chained = true}, {.chained = true, .arm = true}, {.arm = true}};
    struct test *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        const struct macho_toy *m = toy(t, kinds[i]);
        struct work w;

        start(&w, m, t);
        assert_ok(exti__macho_shift(&w.b, &t->err), &t->err);
        for (size_t k = 0; k < MTOY_SLOTS; k++) {
            const size_t at = m->data + 8 * k;
            const bool moves = k >= (kinds[i].chained ? 4 : 2);

            assert_int_equal(in_body(&w, at), mtoy_get(m, at, 8) + (moves ? P : 0));
        }
        assert_int_equal(in_body(&w, m->data + 48), 42);
        if (kinds[i].chained) {
            const uint8_t *p = w.b.pieces[MACHO_CHAINED_FIXUPS].data.p;

            assert_int_equal(get_value(p + 48 + 8, 8), m->data + P); /* segment_offset */
            put_value((uint8_t *)(uintptr_t)p + 48 + 8, 8, m->data);
            assert_memory_equal(p, m->b + m->chained, m->chained_n);
        }
        work_finish(&w);
    }
}

static void shift_moves_a_limit_of_pointers(void **state)
{
    struct test *t = *state;
    struct macho_toy *m = toy(t, (struct macho_toy_opts){.chained = true});
    struct work w;

    mtoy_put(m, m->chained + 48 + 16, 4, 0x100000);
    start(&w, m, t);
    assert_ok(exti__macho_shift(&w.b, &t->err), &t->err);
    assert_int_equal(get_value(w.b.pieces[MACHO_CHAINED_FIXUPS].data.p + 48 + 16, 4), 0x100000 + P);
    work_finish(&w);
}

/* Edits the payload of an earlier step, if there is one. */
static void shift_edits_a_replaced_payload(void **state)
{
    static const int32_t ordinals[] = {2, 2, 2, 300};
    struct test *t = *state;
    struct macho_toy *m = toy(t, (struct macho_toy_opts){.chained = true});
    struct macho_chained chained;
    struct work w;
    struct exti_buf *out;
    uint64_t starts;

    start(&w, m, t);
    assert_ok(exti__macho_chained_open(&w.f, &chained, &t->err), &t->err);
    out = exti__macho_piece_new(&w.b, MACHO_CHAINED_FIXUPS, 1 << 16);
    assert_ok(exti__macho_chained_set_ordinals(&chained, ordinals, out, &t->err), &t->err);
    assert_ok(exti__macho_shift(&w.b, &t->err), &t->err);
    assert_int_equal(get_value(out->p + 20, 4), DYLD_CHAINED_IMPORT_ADDEND64);
    starts = get_value(out->p + 4, 4);
    assert_int_equal(get_value(out->p + starts + 16 + 8, 8), m->data + P);
    work_finish(&w);
}

struct seen {
    const char *name;
    uint64_t address, other;
};

static int see_export(void *user, const struct macho_export *e, struct exti_error *err)
{
    const struct seen *want = user;

    (void)err;
    while (strcmp(want->name, e->name) != 0)
        assert_non_null((++want)->name);
    assert_int_equal(e->address, want->address);
    assert_int_equal(e->other, want->other);
    return 0;
}

static void shift_moves_exports_that_have_an_address(void **state)
{
    static const struct macho_export list[] = {
        {"_absolute", EXPORT_SYMBOL_FLAGS_KIND_ABSOLUTE, 0x1234, 0, NULL},
        {"_plain", 0, 0x7f, 0, NULL},
        {"_reexport", EXPORT_SYMBOL_FLAGS_REEXPORT, 0, 2, "_other"},
        {"_resolver", EXPORT_SYMBOL_FLAGS_STUB_AND_RESOLVER, 0x1000, 0x1010, NULL},
        {"_tlv", EXPORT_SYMBOL_FLAGS_KIND_THREAD_LOCAL, 0x1100, 0, NULL},
        {"_weak", EXPORT_SYMBOL_FLAGS_WEAK_DEFINITION, 0x1200, 0, NULL},
    };
    static const struct seen want[] = {{"_absolute", 0x1234, 0},
                                       {"_plain", 0x7f + P, 0},
                                       {"_reexport", 0, 2},
                                       {"_resolver", 0x1000 + P, 0x1010 + P},
                                       {"_tlv", 0x1100 + P, 0},
                                       {"_weak", 0x1200 + P, 0},
                                       {NULL, 0, 0}};
    static const enum macho_piece_kind kinds[] = {MACHO_EXPORT, MACHO_EXPORTS_TRIE};
    struct test *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        const struct macho_toy *m = toy(t, (struct macho_toy_opts){.chained = i});
        struct work w;

        start(&w, m, t);
        assert_ok(exti__macho_trie_build(list, ARRAY_SIZE(list),
                                         exti__macho_piece_new(&w.b, kinds[i], 4096), &t->err),
                  &t->err);
        assert_ok(exti__macho_shift(&w.b, &t->err), &t->err);
        assert_ok(exti__macho_trie_walk(exti__macho_piece(&w.b, kinds[i]), see_export,
                                        (void *)(uintptr_t)want, &t->err),
                  &t->err);
        work_finish(&w);
    }
}

static void shift_moves_symbols_that_have_an_address(void **state)
{
    static const struct {
        uint8_t type, sect;
        uint64_t value;
        bool moves;
    } symbols[] = {
        {N_SECT, 1, 0x11000, true},   /* defined here */
        {N_SECT | N_EXT, 1, 0, true}, /* the file's own header, of an image at 0 */
        {N_ABS | N_EXT, 0, 0x11000, false},
        {N_UNDF | N_EXT, 0, 0, false},
        {N_INDR | N_EXT, 0, 5, false},
        {0x20, 0, 0, false},        /* N_GSYM of ld64 */
        {0x20, 4, 0x12000, true},   /* N_GSYM of lld */
        {0x64, 1, 0, false},        /* N_SO, the end of a source */
        {0x66, 3, 0x62ab12, false}, /* N_OSO: a time */
        {0x2e, 1, 0x11000, true},   /* N_BNSYM */
        {0x24, 1, 0x11000, true},   /* N_FUN */
        {0x44, 1, 0x11004, true},   /* N_SLINE */
        {0x24, 0, 0x19, false},     /* N_FUN: its size */
        {0x4e, 1, 0x19, false},     /* N_ENSYM of ld64: its size */
        {0x2e, 1, 0x11020, true},
        {0x4e, 1, 0x11020, true},   /* N_ENSYM of ld: where it begins */
        {0x26, 4, 0x12000, true},   /* N_STSYM */
        {0x28, 5, 0x12040, true},   /* N_LCSYM */
        {0x32, 0, 0x62ab12, false}, /* N_AST: a time */
        {0x84, 1, 0x11000, true},   /* N_SOL */
        {0xa0, 0, 16, false},       /* N_PSYM: a stack offset */
        {0xc0, 1, 0x11000, true},   /* N_LBRAC */
        {0xe0, 1, 0x11010, true},   /* N_RBRAC */
        {0xe8, 1, 0x11010, true},   /* N_ECOML */
        {0xa4, 1, 0x11010, true},   /* N_ENTRY */
    };
    struct test *t = *state;
    struct work w;
    struct exti_buf *buf;

    start(&w, toy(t, (struct macho_toy_opts){0}), t);
    buf = exti__macho_piece_new(&w.b, MACHO_SYMBOLS, 4096);
    for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
        uint8_t entry[NLIST_64_SIZE] = {1, 0, 0, 0, symbols[i].type, symbols[i].sect, 7, 7};

        put_value(entry + 8, 8, symbols[i].value);
        assert_ok(exti__buf_append(buf, entry, sizeof entry, &t->err), &t->err);
    }
    assert_ok(exti__macho_shift(&w.b, &t->err), &t->err);
    for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
        const uint8_t *p = buf->p + i * NLIST_64_SIZE;

        if (get_value(p + 8, 8) != symbols[i].value + (symbols[i].moves ? P : 0))
            fail_msg("symbol %zu has 0x%llx", i, (unsigned long long)get_value(p + 8, 8));
        assert_int_equal(get_value(p, 8), 1 | (uint64_t)symbols[i].type << 32 |
                                              (uint64_t)symbols[i].sect << 40 | 0x0707ull << 48);
    }
    work_finish(&w);
}

static void shift_moves_the_first_function_start(void **state)
{
    static const struct {
        size_t before_n, after_n;
        uint8_t before[24], after[24];
    } rows[] = {
        {8, 8, {0x7f, 4, 8, 0}, {0xff, 0x80, 1, 4, 8, 0}}, /* the padding takes the growth */
        {8, 16, {0x7f, 1, 2, 3, 4, 5, 6, 0}, {0xff, 0x80, 1, 1, 2, 3, 4, 5, 6, 0}},
        {3, 8, {0x80, 1, 0}, {0x80, 0x81, 1, 0}},             /* it had no padding */
        {8, 8, {0x80, 0x80, 1, 4, 0}, {0x80, 0x80, 2, 4, 0}}, /* as long as before */
        {8, 8, {0}, {0}},                                     /* no functions */
    };
    struct test *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct exti_span s;
        struct work w;

        start(&w, toy(t, (struct macho_toy_opts){0}), t);
        assert_ok(exti__buf_append(exti__macho_piece_new(&w.b, MACHO_FUNCTION_STARTS, 64),
                                   rows[i].before, rows[i].before_n, &t->err),
                  &t->err);
        assert_ok(exti__macho_shift(&w.b, &t->err), &t->err);
        s = exti__macho_piece(&w.b, MACHO_FUNCTION_STARTS);
        assert_int_equal(s.n, rows[i].after_n);
        assert_memory_equal(s.p, rows[i].after, s.n);
        work_finish(&w);
    }
}

static void shift_moves_data_in_code(void **state)
{
    static const uint8_t before[] = {0, 0x10, 0, 0, 8, 0, 1, 0, 0x34, 0x12, 0, 0, 4, 0, 4, 0};
    struct test *t = *state;
    struct exti_buf *buf;
    struct work w;

    start(&w, toy(t, (struct macho_toy_opts){0}), t);
    buf = exti__macho_piece_new(&w.b, MACHO_DATA_IN_CODE, 64);
    assert_ok(exti__buf_append(buf, before, sizeof before, &t->err), &t->err);
    assert_ok(exti__macho_shift(&w.b, &t->err), &t->err);
    assert_int_equal(get_value(buf->p, 8), 0x0001000800005000);
    assert_int_equal(get_value(buf->p + 8, 8), 0x0004000400005234);
    work_finish(&w);
}

static void shift_moves_init_offsets(void **state)
{
    struct test *t = *state;
    struct macho_toy *m = toy(t, (struct macho_toy_opts){0});
    struct macho_section *s;
    struct work w;

    mtoy_put(m, m->text, 8, 0x0000200000001000);
    start(&w, m, t);
    s = toy_section(&w, "__text");
    s->flags = S_INIT_FUNC_OFFSETS;
    s->size = 8;
    assert_ok(exti__macho_shift(&w.b, &t->err), &t->err);
    assert_int_equal(in_body(&w, m->text), 0x0000600000005000);
    work_finish(&w);
}

/* ---- load commands --------------------------------------------------------------------------- */

static void add_command(struct work *w, uint32_t cmd, size_t size, size_t at, size_t width,
                        uint64_t v, struct exti_error *err)
{
    uint8_t command[4096] = {0};

    put_value(command, 4, cmd);
    put_value(command + 4, 4, size);
    put_value(command + at, width, v);
    assert_ok(exti__buf_append(&w->b.commands, command, size, err), err);
    w->b.command_count++;
}

static void shift_moves_addresses_in_commands(void **state)
{
    struct test *t = *state;
    struct work w;
    size_t n;
    const uint8_t *p;

    start(&w, toy(t, (struct macho_toy_opts){0}), t);
    add_command(&w, LC_ROUTINES_64, 72, 8, 8, 0x11000, &t->err);
    add_command(&w, LC_ROUTINES_64, 72, 8, 8, 0, &t->err);
    add_command(&w, LC_ENCRYPTION_INFO_64, 24, 8, 4, 0x1000, &t->err);
    add_command(&w, LC_ENCRYPTION_INFO, 20, 8, 4, 0, &t->err);
    n = w.b.commands.n;
    assert_ok(exti__macho_shift(&w.b, &t->err), &t->err);
    assert_int_equal(w.b.commands.n, n);
    p = w.b.commands.p + n - 72 - 72 - 24 - 20;
    assert_int_equal(get_value(p + 8, 8), 0x11000 + P);
    assert_int_equal(get_value(p + 72 + 8, 8), 0);
    assert_int_equal(get_value(p + 144 + 8, 4), 0x1000 + P);
    assert_int_equal(get_value(p + 168 + 8, 4), 0);
    work_finish(&w);
}

static void shift_drops_split_info(void **state)
{
    struct test *t = *state;
    struct work w;
    uint32_t count;
    size_t n;

    start(&w, toy(t, (struct macho_toy_opts){0}), t);
    n = w.b.commands.n;
    count = w.b.command_count;
    add_command(&w, LC_SEGMENT_SPLIT_INFO, 16, 8, 4, 5, &t->err);
    add_command(&w, LC_SOURCE_VERSION, 16, 8, 4, 6, &t->err);
    assert_ok(exti__macho_shift(&w.b, &t->err), &t->err);
    assert_int_equal(w.b.commands.n, n + 16);
    assert_int_equal(w.b.command_count, count + 1);
    assert_int_equal(get_value(w.b.commands.p + n, 4), LC_SOURCE_VERSION);
    assert_int_equal(get_value(w.b.commands.p + n + 8, 4), 6);
    assert_true(w.b.pieces[MACHO_SPLIT_INFO].replaced);
    assert_int_equal(w.b.pieces[MACHO_SPLIT_INFO].data.n, 0);
    work_finish(&w);
}

static void shift_leaves_empty_segments_without_an_offset(void **state)
{
    struct test *t = *state;
    struct work w;
    const uint8_t *p;

    start(&w, toy(t, (struct macho_toy_opts){0}), t);
    add_command(&w, LC_SEGMENT_64, SEGMENT_COMMAND_64_SIZE, 24, 8, 0x90000, &t->err);
    assert_ok(exti__macho_shift(&w.b, &t->err), &t->err);
    p = w.b.commands.p + w.b.commands.n - SEGMENT_COMMAND_64_SIZE;
    assert_int_equal(get_value(p + 24, 8), 0x90000 + P);
    assert_int_equal(get_value(p + 40, 8), 0);
    work_finish(&w);
}

static void shift_rejects_broken_new_commands(void **state)
{
    static const struct {
        uint32_t cmd;
        size_t size, at, width;
        uint64_t value;
        int code;
    } rows[] = {
        {LC_UUID, 24, 4, 4, 4, EXTI_E_FORMAT},
        {LC_UUID, 24, 4, 4, 32, EXTI_E_FORMAT},
        {LC_SEGMENT_64, 64, 8, 8, 0, EXTI_E_FORMAT},
        {LC_SEGMENT_64, 72, 64, 4, 1, EXTI_E_FORMAT},
        {LC_SEGMENT_64, 72, 24, 8, UINT64_MAX, EXTI_E_FORMAT},
        {LC_SEGMENT_64, 72, 40, 8, UINT64_MAX, EXTI_E_FORMAT},
        {LC_ROUTINES_64, 72, 8, 8, UINT64_MAX, EXTI_E_FORMAT},
        {LC_ROUTINES_64, 64, 8, 8, 1, EXTI_E_FORMAT},
        {LC_ENCRYPTION_INFO, 20, 8, 4, UINT32_MAX, EXTI_E_UNSUPPORTED},
        {LC_ENCRYPTION_INFO, 16, 8, 4, 1, EXTI_E_FORMAT},
    };
    struct test *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct work w;
        int rc;

        start(&w, toy(t, (struct macho_toy_opts){0}), t);
        add_command(&w, rows[i].cmd, rows[i].size, rows[i].at, rows[i].width, rows[i].value,
                    &t->err);
        rc = exti__macho_shift(&w.b, &t->err);
        work_finish(&w);
        if (rc != rows[i].code)
            print_message("row %zu\n", i);
        assert_exti(rc, rows[i].code, &t->err, ANY_OFFSET);
        memset(&t->err, 0, sizeof t->err);
    }
}

/* ---- the second header ----------------------------------------------------------------------- */

/* The first command `cmd` after the header at `p`. */
static const uint8_t *find_command(const uint8_t *p, uint32_t cmd)
{
    const uint8_t *at = p + MACH_HEADER_64_SIZE;

    for (uint64_t i = 0; i < get_value(p + 16, 4); i++) {
        if (get_value(at, 4) == cmd)
            return at;
        at += get_value(at + 4, 4);
    }
    return NULL;
}

static void second_header_begins_the_text(void **state)
{
    struct test *t = *state;
    struct macho_toy *m = toy(t, (struct macho_toy_opts){.room = 200});
    struct exti_buf out = exti__buf(1 << 20);
    struct work w;
    const uint8_t *p;

    start(&w, m, t);
    w.b.header_flags = 0x85;
    assert_ok(exti__macho_shift(&w.b, &t->err), &t->err);
    assert_ok(exti__buf_zeros(&out, 24, &t->err), &t->err);
    assert_ok(exti__macho_second_header(&w.b, &out, &t->err), &t->err);
    p = out.p + 24;
    assert_int_equal(out.n - 24, w.f.room_end);
    assert_memory_equal(p, m->b, 16);
    assert_int_equal(get_value(p + 16, 4), w.b.command_count);
    assert_int_equal(get_value(p + 20, 4), w.b.commands.n);
    assert_int_equal(get_value(p + 24, 4), 0x85);
    p = find_command(p, LC_SEGMENT_64);
    assert_string_equal((const char *)p + 8, "__TEXT");
    assert_int_equal(get_value(p + 24, 8), MTOY_BASE + P);
    assert_int_equal(get_value(p + 32, 8), w.f.text->vmsize);
    assert_int_equal(get_value(p + 40, 8), 0);
    assert_int_equal(get_value(p + 48, 8), w.f.text->filesize);
    /* The rest is the same as in the first header. */
    assert_memory_equal(p + 72, w.b.commands.p + 72, w.b.commands.n - 72);
    exti__buf_free(&out);
    work_finish(&w);
}

static void second_header_omits_commands_for_dyld_alone(void **state)
{
    static const uint32_t left_out[] = {LC_ID_DYLIB,       LC_LOAD_DYLIB, LC_LOAD_WEAK_DYLIB,
                                        LC_REEXPORT_DYLIB, LC_RPATH,      LC_CODE_SIGNATURE};
    static const uint32_t kept[] = {LC_SEGMENT_64,     LC_DYLD_INFO_ONLY, LC_SYMTAB,
                                    LC_DYSYMTAB,       LC_UUID,           LC_BUILD_VERSION,
                                    LC_FUNCTION_STARTS};
    struct test *t = *state;
    struct exti_buf out = exti__buf(1 << 20);
    struct work w;
    uint64_t size = 0;

    start(&w, toy(t, (struct macho_toy_opts){.room = 8}), t);
    add_command(&w, LC_RPATH, 400, 8, 4, 12, &t->err);
    assert_ok(exti__macho_shift(&w.b, &t->err), &t->err);
    assert_ok(exti__macho_second_header(&w.b, &out, &t->err), &t->err);
    assert_int_equal(out.n, w.f.room_end);
    for (size_t i = 0; i < ARRAY_SIZE(left_out); i++)
        assert_null(find_command(out.p, left_out[i]));
    for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
        assert_non_null(find_command(out.p, kept[i]));
    for (uint64_t i = 0; i < get_value(out.p + 16, 4); i++)
        size += get_value(out.p + MACH_HEADER_64_SIZE + size + 4, 4);
    assert_int_equal(get_value(out.p + 20, 4), size);
    for (size_t i = MACH_HEADER_64_SIZE + size; i < out.n; i++)
        assert_int_equal(out.p[i], 0);
    exti__buf_free(&out);
    work_finish(&w);
}

static void second_header_is_refused_without_room(void **state)
{
    struct test *t = *state;
    struct exti_buf out = exti__buf(1 << 20);
    struct work w;

    start(&w, toy(t, (struct macho_toy_opts){.room = 8}), t);
    add_command(&w, LC_SUB_CLIENT, 4096, 8, 4, 12, &t->err);
    assert_ok(exti__macho_shift(&w.b, &t->err), &t->err);
    assert_exti(exti__macho_second_header(&w.b, &out, &t->err), EXTI_E_UNSUPPORTED, &t->err, 0);
    assert_says(&t->err, "second header");
    exti__buf_free(&out);
    memset(&t->err, 0, sizeof t->err);
    for (long k = 0; k < 2; k++) {
        int rc;

        out = exti__buf(k ? 200 : 16); /* the limit makes it fail as if out of memory */
        rc = exti__macho_second_header(&w.b, &out, &t->err);
        exti__buf_free(&out);
        assert_exti(rc, EXTI_E_NOSPACE, &t->err, ANY_OFFSET);
        memset(&t->err, 0, sizeof t->err);
    }
    work_finish(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(shift_moves_pointers),
        exti_test(shift_moves_a_limit_of_pointers),
        exti_test(shift_edits_a_replaced_payload),
        exti_test(shift_moves_exports_that_have_an_address),
        exti_test(shift_moves_symbols_that_have_an_address),
        exti_test(shift_moves_the_first_function_start),
        exti_test(shift_moves_data_in_code),
        exti_test(shift_moves_init_offsets),
        exti_test(shift_moves_addresses_in_commands),
        exti_test(shift_drops_split_info),
        exti_test(shift_leaves_empty_segments_without_an_offset),
        exti_test(shift_rejects_broken_new_commands),
        exti_test(second_header_begins_the_text),
        exti_test(second_header_omits_commands_for_dyld_alone),
        exti_test(second_header_is_refused_without_room),
    };

    return cmocka_run_group_tests_name("macho/macho_shift_parts", tests, NULL, NULL);
}
