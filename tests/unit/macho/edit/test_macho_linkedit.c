#include <string.h>

#include "macho/edit/macho_commands.h"
#include "tests/unit/macho/macho_edit.h"
#include "tests/unit/macho/macho_link.h"
#include "tests/unit/macho/macho_toy.h"

static uint32_t get32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t get64(const uint8_t *p)
{
    return get32(p) | (uint64_t)get32(p + 4) << 32;
}

static const uint8_t *command(struct exti_span s, uint32_t cmd, const char *segment)
{
    const uint8_t *p = s.p + MACH_HEADER_64_SIZE;

    for (uint32_t i = 0; i < get32(s.p + 16); i++, p += get32(p + 4))
        if (get32(p) == cmd && (!segment || strcmp((const char *)p + 8, segment) == 0))
            return p;
    return NULL;
}

/* ---- the order that Apple's tools walk, written from cctools' checkout.c --------------------- */

struct walk {
    struct exti_span s;
    uint64_t at;
};

/* Pieces must be adjacent, or start at the next multiple of `align`. */
static void step(struct walk *w, uint32_t cmd, size_t off, size_t size, size_t unit, size_t align)
{
    const uint8_t *p = command(w->s, cmd, NULL);

    if (!p || !get32(p + size))
        return;
    if (get32(p + off) != w->at)
        w->at = (w->at + align - 1) / align * align;
    assert_int_equal(get32(p + off), w->at);
    w->at += (uint64_t)get32(p + size) * unit;
}

static void assert_in_order(struct exti_span s)
{
    static const uint32_t blobs[] = {LC_DYLD_CHAINED_FIXUPS, LC_DYLD_EXPORTS_TRIE};
    static const uint32_t more[] = {LC_SEGMENT_SPLIT_INFO, LC_FUNCTION_STARTS, LC_DATA_IN_CODE,
                                    LC_DYLIB_CODE_SIGN_DRS, LC_LINKER_OPTIMIZATION_HINT};
    const uint8_t *linkedit = command(s, LC_SEGMENT_64, "__LINKEDIT");
    const uint8_t *data = command(s, LC_DATA_IN_CODE, NULL);
    struct walk w = {s, get64(linkedit + 40)};

    for (size_t i = 8; i < 48; i += 8)
        step(&w, LC_DYLD_INFO_ONLY, i, i + 4, 1, 1);
    for (size_t i = 0; i < ARRAY_SIZE(blobs); i++)
        step(&w, blobs[i], 8, 12, 1, 1);
    step(&w, LC_DYSYMTAB, 72, 76, 8, 1);
    for (size_t i = 0; i < ARRAY_SIZE(more); i++) {
        if (more[i] == LC_DATA_IN_CODE && data)
            assert_int_equal(get32(data + 8), w.at);
        step(&w, more[i], 8, 12, 1, 1);
    }
    step(&w, LC_SYMTAB, 8, 12, 16, 1);
    step(&w, LC_DYSYMTAB, 64, 68, 8, 1);
    step(&w, LC_DYSYMTAB, 56, 60, 4, 1);
    step(&w, LC_SYMTAB, 16, 20, 1, 8);
    step(&w, LC_CODE_SIGNATURE, 8, 12, 1, 16);
    assert_int_equal(w.at, s.n);
    assert_int_equal(w.at, get64(linkedit + 40) + get64(linkedit + 48));
    assert_true(get64(linkedit + 48) <= get64(linkedit + 32));
}

/* ---- files as lld makes them ----------------------------------------------------------------- */

static const char *const linked[] = {
    MACHO_BUNDLE "-fixup_chains",
    MACHO_BUNDLE "-fixup_chains -adhoc_codesign -function_starts -data_in_code_info",
    MACHO_BUNDLE "-no_fixup_chains",
    MACHO_DYLIB "-no_fixup_chains -adhoc_codesign",
    MACHO_DYLIB "-fixup_chains -no_function_starts",
};

static void assert_equal(struct exti_span a, struct exti_span b)
{
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.p, b.p, b.n);
}

static void without_edits_gives_the_same_file(void **state)
{
    struct test *t = *state;
    struct macho_making m;

    macho_skip_without_tools();
    for (size_t i = 0; i < 2 * ARRAY_SIZE(linked); i++) {
        struct exti_span s = macho_link(t, macho_archs[i % 2], "ext.so", linked[i / 2]);

        making_open(t, &m, s);
        assert_ok(exti__macho_edit_commands(&m.b, &t->err), &t->err);
        assert_equal(making_put_together(t, &m), s);
        making_close(&m);
        assert_in_order(s);
    }
}

/* The first of `kinds` that is not empty in the file. */
static enum macho_piece_kind first_of(const struct macho_file *f,
                                      const enum macho_piece_kind kinds[2])
{
    return f->pieces[kinds[0]].s.n ? kinds[0] : kinds[1];
}

static struct exti_span with_piece(struct test *t, struct exti_span s, enum macho_piece_kind kind,
                                   const void *p, size_t n)
{
    struct macho_making m;
    struct exti_span made;

    making_open(t, &m, s);
    making_replace(t, &m, kind, p, n);
    assert_ok(exti__macho_edit_commands(&m.b, &t->err), &t->err);
    made = making_put_together(t, &m);
    making_close(&m);
    return made;
}

static struct exti_span piece(struct test *t, struct exti_span s, enum macho_piece_kind kind)
{
    struct macho_file f;
    struct exti_span found;

    assert_ok(exti__macho_open(s, &f, &t->err), &t->err);
    found = f.pieces[kind].s;
    exti__macho_close(&f);
    return found;
}

/* Grows a piece by 3 bytes, so by 8 with padding, and shrinks it again: lld's layout must come
 * back. */
static void pieces_follow_each_other_when_one_grows(void **state)
{
    static const enum macho_piece_kind kinds[][2] = {{MACHO_EXPORT, MACHO_EXPORTS_TRIE},
                                                     {MACHO_BIND, MACHO_CHAINED_FIXUPS}};
    struct test *t = *state;

    macho_skip_without_tools();
    for (size_t i = 0; i < 4 * ARRAY_SIZE(linked); i++) {
        struct exti_span s = macho_link(t, macho_archs[i % 2], "ext.so", linked[i / 4]), made, old;
        enum macho_piece_kind kind;
        struct macho_file f;
        uint8_t *big;

        assert_ok(exti__macho_open(s, &f, &t->err), &t->err);
        kind = first_of(&f, kinds[i / 2 % 2]);
        exti__macho_close(&f);
        old = piece(t, s, kind);
        big = test_alloc(t, old.n + 8);
        memcpy(big, old.p, old.n);
        made = with_piece(t, s, kind, big, old.n + 3);
        assert_in_order(made);
        making_check(t, made);
        assert_int_equal(piece(t, made, kind).n, old.n + 8);
        assert_memory_equal(piece(t, made, kind).p, big, old.n + 8);
        for (int other = 0; other < MACHO_SIGNATURE; other++)
            if (other != (int)kind)
                assert_equal(piece(t, made, (enum macho_piece_kind)other),
                             piece(t, s, (enum macho_piece_kind)other));

        made = with_piece(t, made, kind, big, old.n);
        making_check(t, made);
        assert_int_equal(made.n, s.n);
        old = piece(t, s, MACHO_SIGNATURE);
        /* All but the first page, which holds __LINKEDIT's vmsize, and its hash. */
        assert_memory_equal(made.p + 4096, s.p + 4096, (old.n ? old.base : s.n) - 4096);
    }
}

/* LLVM's tools show the same for the copy as for the original. */
static void other_readers_see_the_same(void **state)
{
    static const char *const views[] = {"--exports-trie", "--bind", "--rebase", "--function-starts",
                                        "--syms"};
    struct test *t = *state;

    macho_skip_without_tools();
    if (!test_have("llvm-objdump"))
        skip_because("llvm-objdump is not installed");
    for (size_t i = 0; i < 2; i++) {
        struct exti_span s = macho_link(t, macho_archs[i], "ext.so", linked[2]), old;
        uint8_t *big = test_alloc(t, 1024);
        const char *copy = test_path(t, "copy.so");

        old = piece(t, s, MACHO_REBASE);
        memcpy(big, old.p, old.n);
        s = with_piece(t, s, MACHO_REBASE, big, old.n + 512);
        test_write(copy, s.p, s.n);
        for (size_t k = 0; k < ARRAY_SIZE(views); k++) {
            char *of_copy = test_must_run(t, "llvm-objdump", "--macho", views[k], copy, NULL);
            char *of_original =
                test_must_run(t, "llvm-objdump", "--macho", views[k], test_path(t, "ext.so"), NULL);

            assert_string_equal(strchr(of_copy, '\n'), strchr(of_original, '\n'));
        }
    }
}

/* ---- files made by hand ---------------------------------------------------------------------- */

static struct exti_span toy_span(const struct macho_toy *toy)
{
    return exti__span(toy->b, toy->n);
}

static struct macho_toy *make_toy(struct test *t, struct macho_toy_opts o)
{
    struct macho_toy *toy = test_alloc(t, sizeof *toy);

    macho_toy_make(toy, o);
    return toy;
}

static void without_bindings_the_offset_is_zero(void **state)
{
    struct test *t = *state;
    struct macho_toy *toy = make_toy(t, (struct macho_toy_opts){0});
    struct exti_span s = with_piece(t, toy_span(toy), MACHO_LAZY_BIND, "", 0);
    const uint8_t *p = command(s, LC_DYLD_INFO_ONLY, NULL);

    assert_in_order(s);
    making_check(t, s);
    assert_int_equal(get32(p + 32), 0);
    assert_int_equal(get32(p + 36), 0);
    assert_int_equal(get32(command(s, LC_DYSYMTAB, NULL) + 72), 0);

    /* The newer commands locate an empty piece as if it had contents. */
    s = with_piece(t, toy_span(toy), MACHO_FUNCTION_STARTS, "", 0);
    assert_in_order(s);
    p = command(s, LC_FUNCTION_STARTS, NULL);
    assert_int_equal(get32(p + 12), 0);
    assert_int_equal(get32(p + 8), get32(command(s, LC_DATA_IN_CODE, NULL) + 8));
}

/* Three indirect symbols end in the middle of a pointer.  Apple's linker aligns what follows,
 * lld does not. */
static void gap_before_the_strings_stays(void **state)
{
    struct test *t = *state;

    for (int rounded = 0; rounded < 2; rounded++) {
        struct macho_toy *toy = make_toy(t, (struct macho_toy_opts){.chained = true});
        const uint8_t *big = test_alloc(t, 4096);
        struct exti_span s;

        if (!rounded) {
            memmove(toy->b + toy->strings - 4, toy->b + toy->strings, toy->strings_n);
            memset(toy->b + toy->strings - 4 + toy->strings_n, 0, 4);
            mtoy_put(toy, mtoy_find(toy, LC_SYMTAB, 0) + 16, 4, toy->strings - 4);
        }
        s = with_piece(t, toy_span(toy), MACHO_CHAINED_FIXUPS, big, 4096);
        assert_in_order(s);
        assert_int_equal(piece(t, s, MACHO_STRINGS).base - piece(t, s, MACHO_INDIRECT_SYMBOLS).base,
                         rounded ? 16 : 12);
        assert_int_equal(piece(t, s, MACHO_STRINGS).n, toy->strings_n);
    }
}

static void same_size_stays_in_place(void **state)
{
    struct test *t = *state;
    struct macho_toy *toy = make_toy(t, (struct macho_toy_opts){.naked = true});
    uint8_t *symbols = test_alloc(t, MTOY_SYMBOLS * 16);
    struct exti_span s;

    memset(symbols, 0x5a, MTOY_SYMBOLS * 16);
    s = with_piece(t, toy_span(toy), MACHO_SYMBOLS, symbols, MTOY_SYMBOLS * 16);
    memcpy(toy->b + toy->symbols, symbols, MTOY_SYMBOLS * 16);
    assert_equal(s, toy_span(toy));
}

/* A signature ends the file, so bytes after an unsigned file's last piece go. */
static void unsigned_arm64_gets_a_signature(void **state)
{
    struct test *t = *state;

    for (int arm = 0; arm < 2; arm++) {
        struct macho_toy *toy =
            make_toy(t, (struct macho_toy_opts){.arm = arm, .naked = true, .chained = true});
        struct macho_making m;
        struct exti_span s;

        toy->n += 40;
        mtoy_put(toy, mtoy_find(toy, LC_SEGMENT_64, 2) + 48, 8, toy->n - toy->linkedit);
        making_open(t, &m, toy_span(toy));
        assert_ok(exti__macho_edit_commands(&m.b, &t->err), &t->err);
        assert_int_equal(m.b.resign, arm);
        s = making_put_together(t, &m);
        making_close(&m);
        making_check(t, s);
        if (!arm) {
            assert_equal(s, toy_span(toy));
            continue;
        }
        assert_in_order(s);
        assert_int_equal(get32(s.p + 16), toy->ncmds + 1);
        assert_true(piece(t, s, MACHO_SIGNATURE).n > 0);
    }
}

static void memory_size_is_rounded_only_when_it_grows(void **state)
{
    struct test *t = *state;
    struct macho_toy *toy = make_toy(t, (struct macho_toy_opts){0});
    const size_t at = mtoy_find(toy, LC_SEGMENT_64, 2);
    const uint8_t *zeros = test_alloc(t, 0x2000);
    struct exti_span s;

    mtoy_put(toy, at + 32, 8, toy->end - toy->linkedit + 100); /* as lld has it */
    s = with_piece(t, toy_span(toy), MACHO_REBASE, zeros, toy->rebase_n + 8);
    assert_int_equal(get64(command(s, LC_SEGMENT_64, "__LINKEDIT") + 32),
                     toy->end - toy->linkedit + 100);
    s = with_piece(t, toy_span(toy), MACHO_REBASE, zeros, toy->rebase_n + 104);
    assert_int_equal(get64(command(s, LC_SEGMENT_64, "__LINKEDIT") + 32), 0x1000);
    s = with_piece(t, toy_span(toy), MACHO_REBASE, zeros, 0x1000);
    assert_int_equal(get64(command(s, LC_SEGMENT_64, "__LINKEDIT") + 32), 0x2000);
}

/* ---- what cannot be -------------------------------------------------------------------------- */

static void refuses_to_grow_into_a_segment_behind(void **state)
{
    struct test *t = *state;
    struct macho_toy *toy = make_toy(t, (struct macho_toy_opts){.arm = true});
    const uint8_t *zeros = test_alloc(t, 0x8000);
    struct macho_making m;
    uint64_t fileoff = 42;

    making_open(t, &m, toy_span(toy));
    m.f.segments[1].vmaddr = m.f.linkedit->vmaddr + 0x4000;
    making_replace(t, &m, MACHO_REBASE, zeros, 0x8000);
    assert_ok(exti__macho_edit_commands(&m.b, &t->err), &t->err);
    assert_exti(exti__macho_linkedit(&m.b, &m.linkedit, &fileoff, &t->err), EXTI_E_NOSPACE, &t->err,
                mtoy_find(toy, LC_SEGMENT_64, 2) + 32);
    assert_says(&t->err, "__DATA follows at");
    assert_int_equal(fileoff, 42);
    making_close(&m);
}

static void refuses_what_passes_4_gib(void **state)
{
    struct test *t = *state;
    struct macho_toy *toy = make_toy(t, (struct macho_toy_opts){0});
    struct macho_making m;
    uint64_t fileoff;

    for (int i = 0; i < 2; i++) {
        making_open(t, &m, toy_span(toy));
        assert_ok(exti__macho_edit_commands(&m.b, &t->err), &t->err);
        /* The pieces themselves; then only the signature. */
        m.b.shift = i ? UINT32_MAX - (toy->signature - 1) : UINT32_MAX - toy->linkedit - 8;
        m.b.shift = m.b.shift / 16 * 16;
        assert_exti(exti__macho_linkedit(&m.b, &m.linkedit, &fileoff, &t->err), EXTI_E_NOSPACE,
                    &t->err, toy->linkedit);
        assert_says(&t->err, i ? "signature" : "__LINKEDIT");
        making_close(&m);
    }
}

static void fails_cleanly_without_memory(void **state)
{
    struct test *t = *state;
    struct macho_toy *toy = make_toy(t, (struct macho_toy_opts){.arm = true, .naked = true});
    struct macho_making m;
    uint64_t fileoff;

    for (int grow = 0; grow < 2; grow++) {
        int rc = EXTI_E_NOMEM;
        long n = 0;

        for (; rc; n++) {
            making_open(t, &m, toy_span(toy));
            if (grow)
                making_replace(t, &m, MACHO_REBASE, toy->b, 129);
            assert_ok(exti__macho_edit_commands(&m.b, &t->err), &t->err);
            exti__mem_fail_after(n);
            rc = exti__macho_linkedit(&m.b, &m.linkedit, &fileoff, &t->err);
            exti__mem_fail_after(-1);
            if (rc)
                assert_exti(rc, EXTI_E_NOMEM, &t->err, ANY_OFFSET);
            making_close(&m);
        }
        assert_true(n > 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(without_edits_gives_the_same_file),
        exti_test(pieces_follow_each_other_when_one_grows),
        exti_test(other_readers_see_the_same),
        exti_test(without_bindings_the_offset_is_zero),
        exti_test(gap_before_the_strings_stays),
        exti_test(same_size_stays_in_place),
        exti_test(unsigned_arm64_gets_a_signature),
        exti_test(memory_size_is_rounded_only_when_it_grows),
        exti_test(refuses_to_grow_into_a_segment_behind),
        exti_test(refuses_what_passes_4_gib),
        exti_test(fails_cleanly_without_memory),
    };

    return cmocka_run_group_tests_name("macho/macho_linkedit", tests, NULL, NULL);
}
