#include "tests/support/exti_test.h"

#include <string.h>

#include "base/mem.h"
#include "macho/edit/macho_chained_write.h"
#include "macho/read/macho_fixups.h"
#include "tests/unit/macho/macho_forms.h"
#include "tests/unit/macho/macho_toy.h"

struct fixture {
    struct test *t;
    struct exti_error err;
    struct macho_toy toy;
    struct macho_file m;
    struct macho_chained c;
    struct exti_buf out, text;
    struct macho_fixup list[64];
    size_t n;
};

static int setup(void **state)
{
    static struct fixture f;
    void *t = NULL;

    memset(&f, 0, sizeof f);
    f.out = exti__buf(1 << 20);
    f.text = exti__buf(1 << 20);
    test_setup(&t);
    f.t = t;
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    void *t = f->t;

    exti__mem_fail_after(-1);
    exti__macho_close(&f->m);
    exti__buf_free(&f->out);
    exti__buf_free(&f->text);
    return test_teardown(&t);
}

#define chained_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static void append_line(struct fixture *f, const char *line)
{
    assert_ok(exti__buf_append(&f->text, line, strlen(line), &f->err), &f->err);
}

static const char *said(struct fixture *f)
{
    assert_ok(exti__buf_append(&f->text, "", 1, &f->err), &f->err);
    f->text.n = 0;
    return (const char *)f->text.p;
}

static int keep_fixup(void *user, const struct macho_fixup *x, struct exti_error *err)
{
    struct fixture *f = user;

    (void)err;
    if (f->n < ARRAY_SIZE(f->list))
        f->list[f->n] = *x;
    f->n++;
    return 0;
}

static void open_file(struct fixture *f, struct exti_span s)
{
    exti__macho_close(&f->m);
    assert_ok(exti__macho_open(s, &f->m, &f->err), &f->err);
}

/* The imports as llvm-objdump prints them.  It reads names and weakness of the widest format at
 * the wrong offset. */
static void tell_imports(struct fixture *f, bool narrow)
{
    bool addends = f->c.imports_format != DYLD_CHAINED_IMPORT;
    static const char *const special[] = {"self", "main-executable", "flat-namespace", "weak"};

    for (uint32_t i = 0; i < f->c.imports_count; i++) {
        struct macho_import im;
        const char *lib;

        assert_ok(exti__macho_chained_import(&f->c, i, &im, &f->err), &f->err);
        lib = im.ordinal <= 0 ? special[-im.ordinal]
                              : strrchr(f->m.dylibs[im.ordinal - 1].name, '/') + 1;
        append_line(f, test_format(f->t, " lib_ordinal = %d (%.*s)\n", im.ordinal,
                                   (int)strcspn(lib, "."), lib));
        if (narrow)
            append_line(f, test_format(f->t, " weak_import = %d\n name_offset = %u (%s)\n", im.weak,
                                       (unsigned)((const uint8_t *)im.name -
                                                  (f->c.s.p + f->c.symbols_offset)),
                                       im.name));
        if (addends)
            append_line(f, test_format(f->t, " addend = %lld\n", (long long)im.addend));
    }
}

/* Only the lines about imports. */
static const char *dumped_imports(struct fixture *f, bool narrow)
{
    char *dump = macho_form_dump(f->t, "--chained-fixups", " ");

    for (char *line = strtok(dump, "\n"); line; line = strtok(NULL, "\n"))
        if (!strncmp(line, " lib_ordinal", 12) || !strncmp(line, " addend", 7) ||
            (narrow && (!strncmp(line, " weak_import", 12) || !strncmp(line, " name_offset", 12))))
            append_line(f, test_format(f->t, "%s\n", line));
    return test_format(f->t, "%s", said(f));
}

static void linked_imports_are_read_as_llvm_objdump_reads_them(void **state)
{
    struct fixture *f = *state;

    macho_skip_without_tools();
    for (size_t a = 0; a < ARRAY_SIZE(macho_archs); a++)
        for (size_t i = 0; i < ARRAY_SIZE(macho_forms); i++) {
            const struct macho_form *form = &macho_forms[i];
            bool narrow = form->imports != DYLD_CHAINED_IMPORT_ADDEND64;
            const char *dumped;

            if (!form->chained)
                continue;
            open_file(f, macho_form_link(f->t, macho_archs[a], form));
            assert_ok(exti__macho_chained_open(&f->m, &f->c, &f->err), &f->err);
            assert_int_equal(f->c.imports_format, form->imports);
            assert_true(f->c.imports_count > 5);
            dumped = dumped_imports(f, narrow);
            tell_imports(f, narrow);
            assert_string_equal(said(f), dumped);
        }
}

static const char *place(struct fixture *f, uint64_t offset, uint64_t *vmaddr)
{
    for (size_t i = 0; i < f->m.section_count; i++) {
        const struct macho_section *x = &f->m.sections[i];

        if (x->offset && offset >= x->offset && offset - x->offset < x->size) {
            *vmaddr = x->addr + (offset - x->offset);
            return test_format(f->t, "%s %s", x->segment, x->name);
        }
    }
    fail_msg("no section at %llx", (unsigned long long)offset);
    return "";
}

static const char *library(struct fixture *f, int32_t ordinal)
{
    static const char *const special[] = {"this-image", "main-executable", "flat-namespace",
                                          "weak"};
    const char *name;

    if (ordinal <= 0)
        return special[-ordinal];
    name = strrchr(f->m.dylibs[ordinal - 1].name, '/') + 1;
    return test_format(f->t, "%.*s", (int)strcspn(name, "."), name);
}

static int tell_slot(void *user, const struct macho_fixup *x, struct exti_error *err)
{
    struct fixture *f = user;
    struct macho_import im;
    uint64_t at = 0;
    const char *where = place(f, x->offset, &at);

    append_line(f, test_format(f->t, "%s 0x%llX 0x%016llX ", where, (unsigned long long)at,
                               (unsigned long long)x->raw));
    if (!x->is_bind) {
        append_line(f, test_format(f->t, "rebase 0x%llX\n",
                                   (unsigned long long)(x->target + f->m.text->vmaddr)));
        return 0;
    }
    assert_ok(exti__macho_chained_import(&f->c, x->import, &im, err), err);
    append_line(f, test_format(f->t, "bind 0x%llX %s %s%s\n", (long long)(x->addend + im.addend),
                               library(f, im.ordinal), im.name, im.weak ? " (weak import)" : ""));
    return 0;
}

static void linked_chains_are_read_as_llvm_objdump_reads_them(void **state)
{
    struct fixture *f = *state;

    macho_skip_without_tools();
    for (size_t a = 0; a < ARRAY_SIZE(macho_archs); a++)
        for (size_t i = 0; i < ARRAY_SIZE(macho_forms); i++) {
            char *dumped;

            /* llvm-objdump reads names of the widest format at the wrong offset. */
            if (!macho_forms[i].chained || macho_forms[i].imports == DYLD_CHAINED_IMPORT_ADDEND64)
                continue;
            open_file(f, macho_form_link(f->t, macho_archs[a], &macho_forms[i]));
            dumped = macho_form_dump(f->t, "--dyld-info", "__");
            assert_ok(exti__macho_chained_open(&f->m, &f->c, &f->err), &f->err);
            assert_ok(exti__macho_fixups(&f->m, &f->c, tell_slot, f, &f->err), &f->err);
            assert_string_equal(said(f), dumped);
            assert_true(strlen(dumped) > 400);
        }
}

/* ---- ordinals -------------------------------------------------------------------------------- */

static void make_chained(struct fixture *f, struct macho_toy_opts o)
{
    o.chained = true;
    exti__macho_close(&f->m);
    macho_toy_make(&f->toy, o);
    open_file(f, exti__span(f->toy.b, f->toy.n));
    assert_ok(exti__macho_chained_open(&f->m, &f->c, &f->err), &f->err);
}

/* Replaces the old payload by the written one, for reading only. */
static void reopen(struct fixture *f, struct macho_chained *c)
{
    f->m.pieces[MACHO_CHAINED_FIXUPS].s = exti__span(f->out.p, f->out.n);
    assert_ok(exti__macho_chained_open(&f->m, c, &f->err), &f->err);
}

static void libraries_are_set_in_place_where_they_fit(void **state)
{
    static const int32_t in_place[3][4] = {{240, 0, -1, -3}, {240, 0, -1, -3}, {65520, 0, -1, -3}};
    struct fixture *f = *state;

    for (uint32_t format = 1; format <= 3; format++) {
        struct macho_import was, is;
        struct macho_chained c;
        struct exti_span old;

        make_chained(f, (struct macho_toy_opts){.imports = format});
        old = f->c.s;
        assert_ok(exti__macho_chained_set_ordinals(&f->c, (const int32_t[]){-2, 1, -2, -3}, &f->out,
                                                   &f->err),
                  &f->err);
        assert_int_equal(f->out.n, old.n);
        assert_memory_equal(f->out.p, old.p, old.n);
        exti__buf_free(&f->out);
        assert_ok(exti__macho_chained_set_ordinals(&f->c, in_place[format - 1], &f->out, &f->err),
                  &f->err);
        assert_int_equal(f->out.n, old.n);
        reopen(f, &c);
        for (uint32_t i = 0; i < 4; i++) {
            assert_ok(exti__macho_chained_import(&f->c, i, &was, &f->err), &f->err);
            assert_ok(exti__macho_chained_import(&c, i, &is, &f->err), &f->err);
            assert_string_equal(is.name, was.name);
            assert_int_equal(is.ordinal, in_place[format - 1][i]);
            assert_int_equal(is.weak, was.weak);
            assert_int_equal(is.addend, was.addend);
        }
        exti__buf_free(&f->out);
    }
}

static void libraries_past_240_widen_the_imports(void **state)
{
    static const int32_t ordinals[] = {-2, 241, 65520, -3};
    struct fixture *f = *state;

    for (uint32_t format = 1; format <= 2; format++) {
        struct macho_chained c;

        make_chained(f, (struct macho_toy_opts){.imports = format});
        /* The second import's addend, if the format has one. */
        if (format == 2)
            mtoy_put(&f->toy, f->toy.chained + 80 + 12, 4, (uint32_t)-5);
        assert_ok(exti__macho_chained_set_ordinals(&f->c, ordinals, &f->out, &f->err), &f->err);
        reopen(f, &c);
        assert_int_equal(c.imports_format, DYLD_CHAINED_IMPORT_ADDEND64);
        assert_int_equal(c.imports_offset % 8, 0);
        assert_int_equal(c.starts_offset, f->c.starts_offset);
        assert_int_equal(f->out.n % 8, 0);
        assert_memory_equal(f->out.p + c.starts_offset, f->c.s.p + c.starts_offset, 40);
        for (uint32_t i = 0; i < 4; i++) {
            struct macho_import was, is;

            assert_ok(exti__macho_chained_import(&f->c, i, &was, &f->err), &f->err);
            assert_ok(exti__macho_chained_import(&c, i, &is, &f->err), &f->err);
            assert_string_equal(is.name, was.name);
            assert_int_equal(is.ordinal, ordinals[i]);
            assert_int_equal(is.weak, i == 2);
            assert_int_equal(is.addend, format == 2 && i == 1 ? -5 : 0);
        }
        /* The chains are still found. */
        f->n = 0;
        assert_ok(exti__macho_fixups(&f->m, &c, keep_fixup, f, &f->err), &f->err);
        assert_int_equal(f->n, MTOY_SLOTS);
        exti__buf_free(&f->out);
    }
}

static void libraries_past_65520_are_refused(void **state)
{
    static const int32_t ordinals[] = {-2, 1, 65521, -3};
    struct fixture *f = *state;

    for (uint32_t format = 1; format <= 3; format++) {
        make_chained(f, (struct macho_toy_opts){.imports = format});
        assert_exti(exti__macho_chained_set_ordinals(&f->c, ordinals, &f->out, &f->err),
                    EXTI_E_UNSUPPORTED, &f->err, f->toy.chained);
        assert_says(&f->err, "library ordinal 65521");
    }
    make_chained(f, (struct macho_toy_opts){0});
    f->c.starts_offset = f->c.imports_offset;
    assert_exti(
        exti__macho_chained_set_ordinals(&f->c, (const int32_t[]){241, 1, 1, 1}, &f->out, &f->err),
        EXTI_E_UNSUPPORTED, &f->err, f->toy.chained + 4);
}

/* ---- slots ----------------------------------------------------------------------------------- */

static void slots_are_decoded_in_every_format(void **state)
{
#define BIT(n) (UINT64_C(1) << (n))
    static const struct {
        uint16_t format;
        uint64_t raw;
        struct macho_fixup is;
    } cases[] = {
        {2, BIT(63) | 7ull << 24 | 3, {.is_bind = true, .import = 3, .addend = 7}},
        {2, 0xabull << 36 | (MTOY_BASE + 0x40), {.target = 0x40}},
        {6, BIT(63) | 255ull << 24 | 2, {.is_bind = true, .import = 2, .addend = 255}},
        {6, 0xabull << 36 | 0x123456789, {.target = 0x123456789}},
        {1, BIT(62) | 0x7ffffull << 32 | 3, {.is_bind = true, .import = 3, .addend = -1}},
        {1, BIT(62) | 0x3ffffull << 32 | 3, {.is_bind = true, .import = 3, .addend = 0x3ffff}},
        {1, BIT(62) | BIT(63) | 0x7ffffull << 32 | 3, {.is_bind = true, .import = 3}},
        {1, MTOY_BASE + 0x40, {.target = 0x40}},
        {1, BIT(63) | 0x1234ull << 32 | 0x40, {.target = 0x40}},
        {9, 0x40, {.target = 0x40}},
        {9, BIT(62) | 0x10001, {.is_bind = true, .import = 1}},
        {12, BIT(62) | 1ull << 32 | 1, {.is_bind = true, .import = 1, .addend = 1}},
        {12, BIT(63) | 0x40, {.target = 0x40}},
    };
#undef BIT
    struct fixture *f = *state;

    make_chained(f, (struct macho_toy_opts){0});
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct macho_fixup *x = &f->list[0];

        mtoy_put(&f->toy, f->toy.chained + 32 + 16 + 6, 2, cases[i].format);
        mtoy_put(&f->toy, f->toy.data, 8, cases[i].raw);
        f->n = 0;
        assert_ok(exti__macho_fixups(&f->m, &f->c, keep_fixup, f, &f->err), &f->err);
        assert_int_equal(f->n, 1);
        assert_int_equal(x->format, cases[i].format);
        assert_int_equal(x->raw, cases[i].raw);
        assert_int_equal(x->offset, f->toy.data);
        assert_int_equal(x->is_bind, cases[i].is.is_bind);
        assert_int_equal(x->import, cases[i].is.import);
        assert_int_equal(x->addend, cases[i].is.addend);
        assert_int_equal(x->target, cases[i].is.target);
    }
    /* Strides: 4 bytes, and 8 on arm64e. */
    mtoy_put(&f->toy, f->toy.chained + 32 + 16 + 6, 2, 9);
    mtoy_put(&f->toy, f->toy.data, 8, 2ull << 51);
    mtoy_put(&f->toy, f->toy.data + 16, 8, 0x7feull << 51);
    assert_exti(exti__macho_fixups(&f->m, &f->c, keep_fixup, f, &f->err), EXTI_E_FORMAT, &f->err,
                f->toy.data);
    assert_int_equal(f->list[2].offset, f->toy.data + 16);
}

static void slots_of_chains_come_in_order(void **state)
{
    struct fixture *f = *state;

    for (int arm = 0; arm < 2; arm++) {
        make_chained(f, (struct macho_toy_opts){.arm = arm});
        f->n = 0;
        assert_ok(exti__macho_fixups(&f->m, &f->c, keep_fixup, f, &f->err), &f->err);
        assert_int_equal(f->n, MTOY_SLOTS);
        for (size_t i = 0; i < MTOY_SLOTS; i++) {
            assert_int_equal(f->list[i].offset, f->toy.data + 8 * i);
            assert_int_equal(f->list[i].is_bind, i < 4);
            assert_int_equal(f->list[i].import, i < 4 ? i : 0);
            assert_int_equal(f->list[i].target, i < 4    ? 0
                                                : i == 4 ? f->toy.text
                                                         : f->toy.data + 48);
        }
        /* A page without a chain, and a segment without any. */
        mtoy_put(&f->toy, f->toy.chained + 32 + 16 + 22, 2, DYLD_CHAINED_PTR_START_NONE);
        f->n = 0;
        assert_ok(exti__macho_fixups(&f->m, &f->c, keep_fixup, f, &f->err), &f->err);
        assert_int_equal(f->n, 0);
        mtoy_put(&f->toy, f->toy.chained + 32, 4, 0);
        assert_ok(exti__macho_fixups(&f->m, &f->c, keep_fixup, f, &f->err), &f->err);
    }
}

/* ---- malformed ------------------------------------------------------------------------------- */

struct corruption {
    uint32_t at, width; /* in the payload, or in __DATA */
    bool data;
    uint64_t value;
    int code;
    uint64_t offset; /* the fault's offset, from the same start; ANY_OFFSET: anywhere */
    const char *says;
};

static const struct corruption corruptions[] = {
    {0, 4, false, 1, EXTI_E_UNSUPPORTED, 0, "version 1"},
    {24, 4, false, 1, EXTI_E_UNSUPPORTED, 24, "the names are compressed (format 1)"},
    {20, 4, false, 0, EXTI_E_UNSUPPORTED, 20, "imports format 0"},
    {20, 4, false, 4, EXTI_E_UNSUPPORTED, 20, "imports format 4"},
    {4, 4, false, 27, EXTI_E_FORMAT, 4, "starts at 27 of"},
    {4, 4, false, 0xffffffff, EXTI_E_FORMAT, 4, "starts at 4294967295 of"},
    {8, 4, false, 27, EXTI_E_FORMAT, 8, "imports from 27 to"},
    {8, 4, false, 0xffffffff, EXTI_E_FORMAT, 8, "imports from 4294967295 to"},
    {12, 4, false, 95, EXTI_E_FORMAT, 8, "names from 95 to"},
    {12, 4, false, 0xffffffff, EXTI_E_FORMAT, 8, "names from 4294967295 to"},
    {16, 4, false, 0xffffffff, EXTI_E_FORMAT, 8, "imports from 80 to 17179869260"},
    {16, 4, false, 2, EXTI_E_FORMAT, ANY_OFFSET, "a slot binds import 2 of 2"},
    {80, 4, false, 0xffffff01, EXTI_E_FORMAT, ANY_OFFSET, "an import's name: needs 1 bytes"},
    {80, 4, false, 0xf1, EXTI_E_FORMAT, 80, "import 0: library -15"},
    {80, 4, false, 0xfc, EXTI_E_FORMAT, 80, "import 0: library -4"},
    {32, 4, false, 4, EXTI_E_FORMAT, 32, "starts for 4 segments of 3"},
    {36, 4, false, 0xffffff, EXTI_E_FORMAT, ANY_OFFSET, "starts of a segment: needs 22 bytes"},
    {48, 4, false, 0xffffff, EXTI_E_FORMAT, 48, "starts of a segment: needs 16777215 bytes"},
    {48, 4, false, 10, EXTI_E_FORMAT, ANY_OFFSET, "starts of a segment: ends early"},
    {52, 2, false, 0x2000, EXTI_E_FORMAT, 52, "pages of 0x2000 bytes in __DATA"},
    {54, 2, false, 3, EXTI_E_UNSUPPORTED, 54, "pointer format 3 of __DATA"},
    {54, 2, false, 0, EXTI_E_UNSUPPORTED, 54, "pointer format 0 of __DATA"},
    {56, 8, false, 0x9000, EXTI_E_FORMAT, 56, "__DATA at 0x9000, its command says 0x"},
    {68, 2, false, 2, EXTI_E_FORMAT, ANY_OFFSET, "page starts: ends early"},
    {70, 2, false, 0x8001, EXTI_E_FORMAT, 70, "page 0 of __DATA starts at 0x8001"},
    {70, 2, false, 0x7fff, EXTI_E_FORMAT, 70, "page 0 of __DATA starts at 0x7fff"},
    {70, 2, false, 0xffc, EXTI_E_FORMAT, ANY_OFFSET, "slot: needs 8 bytes, 4 left"},
    {40, 8, true, 0xfffull << 51, EXTI_E_FORMAT, 0, "a chain of __DATA leaves its page"},
    {0, 8, true, 1ull << 63 | 4, EXTI_E_FORMAT, 0, "a slot binds import 4 of 4"},
};

static int ignore(void *user, const struct macho_fixup *x, struct exti_error *err)
{
    (void)user;
    (void)x;
    (void)err;
    return 0;
}

static int read_all(struct fixture *f)
{
    struct macho_import im;
    struct macho_chained c;
    int rc = exti__macho_chained_open(&f->m, &c, &f->err);

    if (!rc)
        rc = exti__macho_chained_import(&c, 0, &im, &f->err);
    return rc ? rc : exti__macho_fixups(&f->m, &c, ignore, NULL, &f->err);
}

static void malformed_payloads_are_refused_with_the_offset(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(corruptions); i++) {
        const struct corruption *k = &corruptions[i];
        size_t base;
        int rc;

        make_chained(f, (struct macho_toy_opts){0});
        base = k->data ? f->toy.data : f->toy.chained;
        mtoy_put(&f->toy, base + k->at, k->width, k->value);
        f->err = (struct exti_error){0};
        rc = read_all(f);
        if (rc != k->code || !strstr(f->err.message, k->says) ||
            (k->offset != ANY_OFFSET && f->err.offset != base + k->offset))
            fail_msg("case %zu: %d at +%llx: %s", i, rc, (unsigned long long)(f->err.offset - base),
                     f->err.message);
    }
}

static void payloads_that_end_early_are_refused(void **state)
{
    struct fixture *f = *state;
    struct exti_span whole;

    make_chained(f, (struct macho_toy_opts){0});
    whole = f->c.s;
    for (size_t n = 0; n < 96; n++) {
        f->m.pieces[MACHO_CHAINED_FIXUPS].s = whole;
        f->m.pieces[MACHO_CHAINED_FIXUPS].s.n = n;
        assert_exti(read_all(f), EXTI_E_FORMAT, &f->err, ANY_OFFSET);
    }
    assert_exti(exti__macho_chained_import(&f->c, 4, &(struct macho_import){0}, &f->err),
                EXTI_E_FORMAT, &f->err, ANY_OFFSET);
}

static void any_corrupt_byte_is_survived(void **state)
{
    static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
    struct fixture *f = *state;

    make_chained(f, (struct macho_toy_opts){0});
    for (size_t at = 0; at < f->c.s.n; at++)
        for (size_t v = 0; v < ARRAY_SIZE(values); v++) {
            uint8_t *p = &f->toy.b[f->toy.chained + at], was = *p;

            *p = values[v];
            read_all(f);
            *p = was;
        }
    assert_ok(read_all(f), &f->err);
}

static void out_of_memory_is_reported(void **state)
{
    static const int32_t ordinals[2][4] = {{3, 1, 2, 0}, {300, 1, 2, 0}};
    struct fixture *f = *state;

    make_chained(f, (struct macho_toy_opts){0});
    for (int wide = 0; wide < 2; wide++) {
        long n = 0;
        int rc;

        do {
            exti__buf_free(&f->out);
            exti__mem_fail_after(n);
            rc = exti__macho_chained_set_ordinals(&f->c, ordinals[wide], &f->out, &f->err);
            exti__mem_fail_after(-1);
            if (rc)
                assert_exti(rc, EXTI_E_NOMEM, &f->err, EXTI_NO_OFFSET);
        } while (rc && ++n < 20);
        assert_int_equal(rc, 0);
        assert_true(n > 0);
        for (size_t max = 0; max < f->c.s.n; max++) {
            exti__buf_free(&f->out);
            f->out = exti__buf(max);
            assert_exti(exti__macho_chained_set_ordinals(&f->c, ordinals[wide], &f->out, &f->err),
                        EXTI_E_NOSPACE, &f->err, EXTI_NO_OFFSET);
        }
        exti__buf_free(&f->out);
        f->out = exti__buf(1 << 20);
    }
}

static int refuse(void *user, const struct macho_fixup *x, struct exti_error *err)
{
    (void)user;
    (void)x;
    (void)err;
    return EXTI_E_HOOK;
}

static void an_error_of_the_callback_ends_the_walk(void **state)
{
    struct fixture *f = *state;

    make_chained(f, (struct macho_toy_opts){0});
    assert_int_equal(exti__macho_fixups(&f->m, &f->c, refuse, NULL, &f->err), EXTI_E_HOOK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        chained_test(linked_imports_are_read_as_llvm_objdump_reads_them),
        chained_test(linked_chains_are_read_as_llvm_objdump_reads_them),
        chained_test(libraries_are_set_in_place_where_they_fit),
        chained_test(libraries_past_240_widen_the_imports),
        chained_test(libraries_past_65520_are_refused),
        chained_test(slots_are_decoded_in_every_format),
        chained_test(slots_of_chains_come_in_order),
        chained_test(malformed_payloads_are_refused_with_the_offset),
        chained_test(payloads_that_end_early_are_refused),
        chained_test(any_corrupt_byte_is_survived),
        chained_test(out_of_memory_is_reported),
        chained_test(an_error_of_the_callback_ends_the_walk),
    };

    return cmocka_run_group_tests_name("macho/macho_chained", tests, NULL, NULL);
}
