#include "macho/read/macho_rebase.h"
#include "tests/unit/macho/macho_bind_lists.h"
#include "tests/unit/macho/macho_forms.h"

static void append_line(struct fixture *f, const char *line)
{
    assert_ok(exti__buf_append(&f->text, line, strlen(line), &f->err), &f->err);
}

static const char *lines(struct fixture *f)
{
    assert_ok(exti__buf_append(&f->text, "", 1, &f->err), &f->err);
    f->text.n = 0;
    return (const char *)f->text.p;
}

static const char *place(struct fixture *f, const struct macho_file *m, uint32_t segment,
                         uint64_t offset)
{
    const struct macho_segment *s = &m->segments[segment];
    uint64_t at = s->vmaddr + offset;

    for (size_t i = 0; i < s->section_count; i++) {
        const struct macho_section *x = &m->sections[s->first_section + i];

        if (at >= x->addr && at - x->addr < x->size)
            return test_format(f->t, "%s %s 0x%08llX", s->name, x->name, (unsigned long long)at);
    }
    fail_msg("no section at %llx", (unsigned long long)at);
    return "";
}

/* A library's name in llvm-objdump's output. */
static const char *library(struct fixture *f, const struct macho_file *m, int32_t ordinal)
{
    static const char *const special[] = {"this-image", "main-executable", "flat-namespace"};
    const char *name;

    if (ordinal <= 0)
        return special[-ordinal];
    name = strrchr(m->dylibs[ordinal - 1].name, '/') + 1;
    return test_format(f->t, "%.*s", (int)strcspn(name, "."), name);
}

struct printing {
    struct fixture *f;
    const struct macho_file *m;
    enum macho_piece_kind kind;
};

static int append_bind(void *user, const struct macho_bind *b, struct exti_error *err)
{
    struct printing *c = user;
    struct fixture *f = c->f;
    const char *where = place(f, c->m, b->segment, b->offset);

    (void)err;
    if (c->kind == MACHO_BIND)
        append_line(f,
                    test_format(f->t, "%s pointer %lld %s %s%s\n", where, (long long)b->addend,
                                library(f, c->m, b->ordinal), b->symbol,
                                b->flags & BIND_SYMBOL_FLAGS_WEAK_IMPORT ? " (weak_import)" : ""));
    else if (c->kind == MACHO_LAZY_BIND)
        append_line(
            f, test_format(f->t, "%s %s %s\n", where, library(f, c->m, b->ordinal), b->symbol));
    else
        append_line(
            f, test_format(f->t, "%s pointer %lld %s\n", where, (long long)b->addend, b->symbol));
    return 0;
}

static int append_rebase(void *user, uint32_t segment, uint64_t offset, uint8_t type,
                         struct exti_error *err)
{
    struct printing *c = user;

    (void)err;
    append_line(c->f, test_format(c->f->t, "%s %s\n", place(c->f, c->m, segment, offset),
                                  type == REBASE_TYPE_POINTER ? "pointer" : "?"));
    return 0;
}

static void linked_streams_are_read_as_llvm_objdump_reads_them(void **state)
{
    static const struct {
        enum macho_piece_kind kind;
        const char *option;
    } streams[] = {
        {MACHO_BIND, "--bind"}, {MACHO_LAZY_BIND, "--lazy-bind"}, {MACHO_WEAK_BIND, "--weak-bind"}};
    struct fixture *f = *state;

    macho_skip_without_tools();
    for (size_t a = 0; a < ARRAY_SIZE(macho_archs); a++)
        for (size_t i = 0; i < ARRAY_SIZE(macho_forms); i++) {
            struct macho_file m;
            struct printing c = {.f = f, .m = &m};

            if (macho_forms[i].chained)
                continue;
            assert_ok(exti__macho_open(macho_form_link(f->t, macho_archs[a], &macho_forms[i]), &m,
                                       &f->err),
                      &f->err);
            for (size_t k = 0; k < ARRAY_SIZE(streams); k++) {
                char *dump = macho_form_dump(f->t, streams[k].option, "__");

                c.kind = streams[k].kind;
                assert_ok(exti__macho_binds(&m, c.kind, append_bind, &c, &f->err), &f->err);
                assert_string_equal(lines(f), dump);
                assert_true(strlen(dump) > 40);
            }
            assert_ok(exti__macho_rebases(&m, append_rebase, &c, &f->err), &f->err);
            assert_string_equal(lines(f), macho_form_dump(f->t, "--rebase", "__"));
            exti__macho_close(&m);
        }
}

/* ---- streams made by hand -------------------------------------------------------------------- */

#define READ(f, kind, bytes) read_binds((f), (kind), (bytes), sizeof bytes - 1)

static void assert_bind(const struct macho_bind *b, const char *symbol, int32_t ordinal,
                        uint64_t offset, int64_t addend)
{
    assert_string_equal(b->symbol, symbol);
    assert_int_equal(b->ordinal, ordinal);
    assert_int_equal(b->segment, 1);
    assert_int_equal(b->offset, offset);
    assert_int_equal(b->addend, addend);
    assert_int_equal(b->type, BIND_TYPE_POINTER);
}

static void every_opcode_does_what_dyld_does(void **state)
{
    static const char all[] = "\x51\x71\x10"
                              "\x3e\x40_a\0\x90"             /* 10 */
                              "\x12\x41_b\0\x60\x7f\xa0\x08" /* 18, then 28 */
                              "\x20\x03\x40_c\0\x60\0\xb2"   /* 28, then 40 */
                              "\x3f\x40_d\0\xc0\x02\x08"     /* 40, 50, then 60 */
                              "\x30\x40_e\0\x80\x10\x90"     /* 70 */
                              "\0\xff";
    struct fixture *f = *state;

    assert_ok(READ(f, MACHO_BIND, all), &f->err);
    assert_int_equal(f->n, 6);
    assert_bind(&f->list[0], "_a", -2, 0x10, 0);
    assert_bind(&f->list[1], "_b", 2, 0x18, -1);
    assert_int_equal(f->list[1].flags, BIND_SYMBOL_FLAGS_WEAK_IMPORT);
    assert_bind(&f->list[2], "_c", 3, 0x28, 0);
    assert_bind(&f->list[3], "_d", -1, 0x40, 0);
    assert_bind(&f->list[4], "_d", -1, 0x50, 0);
    assert_bind(&f->list[5], "_e", 0, 0x70, 0);
    /* ... in the slice, which starts at 0x100 of the file */
    assert_int_equal(f->list[0].at, 0x400 + 3);
    assert_int_equal(f->list[1].at, 0x400 + 9);
}

static void a_library_alone_does_not_change_the_target(void **state)
{
    static const char late[] = "\x51\x71\0\x11\x40_a\0\x90\x12\x90\x60\1\x90\0";
    struct fixture *f = *state;

    assert_ok(READ(f, MACHO_BIND, late), &f->err);
    assert_int_equal(f->n, 3);
    assert_bind(&f->list[0], "_a", 1, 0, 0);
    assert_bind(&f->list[1], "_a", 1, 8, 0);
    assert_bind(&f->list[2], "_a", 2, 16, 1);
}

static void lazy_streams_go_on_behind_done(void **state)
{
    static const char lazy[] = "\x71\0\x11\x40_a\0\x90\0\x71\x08\x3e\x41_b\0\x90\0\x12\x90\0\0";
    struct fixture *f = *state;

    assert_ok(READ(f, MACHO_LAZY_BIND, lazy), &f->err);
    assert_int_equal(f->n, 3);
    assert_bind(&f->list[0], "_a", 1, 0, 0);
    assert_bind(&f->list[1], "_b", -2, 8, 0);
    assert_bind(&f->list[2], "_b", 2, 16, 0);
    assert_int_equal(f->list[1].at, 0x400 + 11);
}

static void weak_streams_name_no_library_and_mark_overrides(void **state)
{
    static const char weak[] = "\x48_strong\0\x40_a\0\x71\0\x90\0";
    struct fixture *f = *state;

    assert_ok(READ(f, MACHO_WEAK_BIND, weak), &f->err);
    assert_int_equal(f->n, 2);
    assert_true(f->list[0].is_override);
    assert_string_equal(f->list[0].symbol, "_strong");
    assert_false(f->list[1].is_override);
    assert_bind(&f->list[1], "_a", BIND_SPECIAL_DYLIB_WEAK_LOOKUP, 0, 0);
    assert_int_equal(f->list[1].at, 0x400 + 9);
}

static void a_file_without_libraries_has_libsystem(void **state)
{
    struct fixture *f = *state;

    use_stream(f, MACHO_BIND, "\x51\x71\0\x11\x40_a\0\x90", 9);
    f->m.dylib_count = 0;
    assert_ok(exti__macho_binds(&f->m, MACHO_BIND, keep_bind, f, &f->err), &f->err);
    use_stream(f, MACHO_BIND, "\x51\x71\0\x12\x40_a\0\x90", 9);
    f->m.dylib_count = 0;
    assert_exti(exti__macho_binds(&f->m, MACHO_BIND, keep_bind, f, &f->err), EXTI_E_FORMAT, &f->err,
                0x503);
}

static void malformed_streams_are_refused_with_the_offset(void **state)
{
    static const struct {
        enum macho_piece_kind kind;
        const char *bytes;
        size_t n;
        int code;
        uint64_t offset;
        const char *says;
    } cases[] = {
#define CASE(kind, bytes, offset, says)                                                            \
    {kind, bytes, sizeof bytes - 1, EXTI_E_FORMAT, 0x500 + (offset), says}
        CASE(MACHO_BIND, "\x51\x11\x40_a\0\x90", 6, "before a segment"),
        CASE(MACHO_BIND, "\x51\x71\0\x40_a\0\x90", 7, "before a library"),
        CASE(MACHO_BIND, "\x51\x71\0\x11\x90", 4, "before a symbol"),
        CASE(MACHO_BIND, "\x71\0\x11\x40_a\0\x90", 7, "type 0 is not"),
        CASE(MACHO_BIND, "\x52\x71\0\x11\x40_a\0\x90", 8, "type 2 is not"),
        CASE(MACHO_BIND, "\x51\x72\0", 1, "segment 2 of 2"),
        CASE(MACHO_BIND, "\x51\x14", 1, "library 4 of 3"),
        CASE(MACHO_BIND, "\x51\x20\x80\x80\x80\x80\x10", 1, "library 4294967296 of 3"),
        CASE(MACHO_BIND, "\x51\x3c", 1, "library -4 of 3"),
        CASE(MACHO_BIND, "\x51\x31", 1, "library -15 of 3"),
        CASE(MACHO_BIND, "\x51\x71\xf9\x7f\x11\x40_a\0\x90", 9, "0x3ff9 is outside of __DATA"),
        CASE(MACHO_BIND, "\x51\x71\xf8\x7f\x11\x40_a\0\x90\x90", 10, "0x4000 is outside"),
        CASE(MACHO_BIND, "\x51\x71\0\x11\x40_a\0\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\x90", 19,
             "0xffffffffffffffff is outside"),
        CASE(MACHO_BIND, "\x51\x40_a", 2, "ends early"),
        CASE(MACHO_BIND, "\x51\x71", 2, "ends early"),
        CASE(MACHO_BIND, "\x51\x71\x80", 3, "ends early"),
        CASE(MACHO_BIND, "\x20", 1, "ends early"),
        CASE(MACHO_BIND, "\x60\x80", 2, "ends early"),
        CASE(MACHO_BIND, "\x80", 1, "ends early"),
        CASE(MACHO_BIND, "\x51\x71\0\x11\x40_a\0\xa0", 9, "ends early"),
        CASE(MACHO_BIND, "\x51\x71\0\x11\x40_a\0\xc0\1", 10, "ends early"),
        CASE(MACHO_BIND, "\xe0", 0, "opcode 0xe0"),
        CASE(MACHO_WEAK_BIND, "\x11", 0, "a library is set"),
        CASE(MACHO_WEAK_BIND, "\x3e", 0, "a library is set"),
        CASE(MACHO_WEAK_BIND, "\x20\1", 0, "a library is set"),
        CASE(MACHO_WEAK_BIND, "\x48_a", 1, "ends early"),
        CASE(MACHO_LAZY_BIND, "\x51", 0, "lazy bind opcodes: opcode 0x51"),
        CASE(MACHO_LAZY_BIND, "\x80\1", 0, "opcode 0x80"),
        CASE(MACHO_LAZY_BIND, "\xa0\1", 0, "opcode 0xa0"),
        CASE(MACHO_LAZY_BIND, "\xb1", 0, "opcode 0xb1"),
        CASE(MACHO_LAZY_BIND, "\xc0\1\1", 0, "opcode 0xc0"),
        CASE(MACHO_LAZY_BIND, "\xd0", 0, "opcode 0xd0"),
#undef CASE
        {MACHO_BIND, "\xd1", 1, EXTI_E_UNSUPPORTED, 0x500, "threaded"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int rc = read_binds(f, cases[i].kind, cases[i].bytes, cases[i].n);

        if (rc != cases[i].code || f->err.offset != cases[i].offset ||
            !strstr(f->err.message, cases[i].says))
            fail_msg("case %zu: %d at %llx: %s", i, rc, (unsigned long long)f->err.offset,
                     f->err.message);
    }
}

static void repeat_counts_are_bounded_by_the_file(void **state)
{
    /* One slot 2^56 times, and 2^63 slots backwards. */
    static const char same[] = "\x51\x71\x10\x11\x40_a\0\xc0\x80\x80\x80\x80\x80\x80\x80\x80\1"
                               "\xf8\xff\xff\xff\xff\xff\xff\xff\xff\1";
    struct fixture *f = *state;

    assert_exti(READ(f, MACHO_BIND, same), EXTI_E_FORMAT, &f->err, 0x508);
    assert_says(&f->err, "more bindings than the file has room for");
    assert_int_equal(f->n, 4096 / 8 + sizeof same - 1);
}

static int count_rebases(void *user, uint32_t segment, uint64_t offset, uint8_t type,
                         struct exti_error *err)
{
    struct fixture *f = user;

    (void)err;
    if (f->n < ARRAY_SIZE(f->list))
        f->list[f->n] = (struct macho_bind){.segment = segment, .offset = offset, .type = type};
    f->n++;
    return 0;
}

static int rebase(struct fixture *f, const void *bytes, size_t n)
{
    use_stream(f, MACHO_REBASE, bytes, n);
    return exti__macho_rebases(&f->m, count_rebases, f, &f->err);
}

static void every_rebase_opcode_does_what_dyld_does(void **state)
{
    static const char all[] = "\x11\x21\x08"
                              "\x52"                        /* 8, 10, then 18 */
                              "\x30\x08\x60\x02"            /* 20, 28, then 30 */
                              "\x42\x70\x10"                /* 40, then 58 */
                              "\x80\x02\x08\x12\x51\0\xff"; /* 58, 68, then 78 */
    static const uint64_t offsets[] = {8, 0x10, 0x20, 0x28, 0x40, 0x58, 0x68, 0x78};
    struct fixture *f = *state;

    assert_ok(rebase(f, all, sizeof all - 1), &f->err);
    assert_int_equal(f->n, ARRAY_SIZE(offsets));
    for (size_t i = 0; i < f->n; i++) {
        assert_int_equal(f->list[i].offset, offsets[i]);
        assert_int_equal(f->list[i].segment, 1);
        assert_int_equal(f->list[i].type, i + 1 < f->n ? 1 : 2);
    }
}

static void malformed_rebases_are_refused_with_the_offset(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        uint64_t offset;
        const char *says;
    } cases[] = {
#define CASE(bytes, offset, says) {bytes, sizeof bytes - 1, 0x500 + (offset), says}
        CASE("\x11\x51", 1, "before a segment"),
        CASE("\x21\0\x51", 2, "slot type 0"),
        CASE("\x14\x21\0\x51", 3, "slot type 4"),
        CASE("\x11\x22\0", 1, "segment 2 of 2"),
        CASE("\x11\x21\xf9\x7f\x51", 4, "0x3ff9 is outside of __DATA"),
        CASE("\x11\x21\0\x60\xff\xff\xff\xff\x7f", 3, "more slots than the file has room for"),
        CASE("\x11\x21\0\x80\xff\xff\xff\xff\x7f\xf8\xff\xff\xff\xff\xff\xff\xff\xff\1", 3,
             "more slots than"),
        CASE("\x21", 1, "ends early"),
        CASE("\x30\x80", 2, "ends early"),
        CASE("\x11\x21\0\x60", 4, "ends early"),
        CASE("\x11\x21\0\x70", 4, "ends early"),
        CASE("\x11\x21\0\x80\1", 5, "ends early"),
        CASE("\x90", 0, "opcode 0x90"),
#undef CASE
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int rc = rebase(f, cases[i].bytes, cases[i].n);

        if (rc != EXTI_E_FORMAT || f->err.offset != cases[i].offset ||
            !strstr(f->err.message, cases[i].says))
            fail_msg("case %zu: %d at %llx: %s", i, rc, (unsigned long long)f->err.offset,
                     f->err.message);
        assert_true(f->n <= 4096 / 8 + 64);
    }
}

static int refuse(void *user, const struct macho_bind *b, struct exti_error *err)
{
    (void)user;
    (void)b;
    (void)err;
    return EXTI_E_HOOK;
}

static void an_error_of_the_callback_ends_the_stream(void **state)
{
    struct fixture *f = *state;

    use_stream(f, MACHO_BIND, "\x51\x71\0\x11\x40_a\0\x90\xff", 10);
    assert_int_equal(exti__macho_binds(&f->m, MACHO_BIND, refuse, f, &f->err), EXTI_E_HOOK);
    use_stream(f, MACHO_BIND, "\x51\x71\0\x11\x40_a\0\xc0\2\0", 11);
    assert_int_equal(exti__macho_binds(&f->m, MACHO_BIND, refuse, f, &f->err), EXTI_E_HOOK);
    use_stream(f, MACHO_WEAK_BIND, "\x48_a\0", 4);
    assert_int_equal(exti__macho_binds(&f->m, MACHO_WEAK_BIND, refuse, f, &f->err), EXTI_E_HOOK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        bind_test(linked_streams_are_read_as_llvm_objdump_reads_them),
        bind_test(every_opcode_does_what_dyld_does),
        bind_test(a_library_alone_does_not_change_the_target),
        bind_test(lazy_streams_go_on_behind_done),
        bind_test(weak_streams_name_no_library_and_mark_overrides),
        bind_test(a_file_without_libraries_has_libsystem),
        bind_test(malformed_streams_are_refused_with_the_offset),
        bind_test(repeat_counts_are_bounded_by_the_file),
        bind_test(every_rebase_opcode_does_what_dyld_does),
        bind_test(malformed_rebases_are_refused_with_the_offset),
        bind_test(an_error_of_the_callback_ends_the_stream),
    };

    return cmocka_run_group_tests_name("macho/macho_bind", tests, NULL, NULL);
}
