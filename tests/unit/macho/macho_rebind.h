/* Shared by the tests of rebinding: a toy file, libraries to bind to, and the result as text. */
#ifndef TESTS_UNIT_MACHO_REBIND_H
#define TESTS_UNIT_MACHO_REBIND_H

#include "tests/support/exti_test.h"

#include <string.h>

#include "base/mem.h"
#include "macho/edit/macho_rebind.h"
#include "macho/edit/macho_trie_build.h"
#include "macho/read/macho_bind.h"
#include "macho/read/macho_chained.h"
#include "tests/unit/macho/macho_toy.h"

struct fixture {
    struct test *t;
    struct exti_error err;
    struct macho_toy toy, provider;
    struct macho_file m;
    struct exti_rewrite_opts opts;
    struct exti_span bind[2];
    struct macho_build b;
    int32_t ordinals[300];
    struct exti_buf text;
};

static inline int setup(void **state)
{
    static struct fixture f;
    void *t = NULL;

    memset(&f, 0, sizeof f);
    f.text = exti__buf(1 << 20);
    test_setup(&t);
    f.t = t;
    *state = &f;
    return 0;
}

static inline void clear_build(struct fixture *f)
{
    for (size_t i = 0; i < MACHO_PIECES; i++)
        exti__buf_free(&f->b.pieces[i].data);
    f->b = (struct macho_build){0};
}

static inline void clear(struct fixture *f)
{
    clear_build(f);
    exti__macho_close(&f->m);
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;
    void *t = f->t;

    exti__mem_fail_after(-1);
    clear(f);
    exti__buf_free(&f->text);
    return test_teardown(&t);
}

#define rebind_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* ---- inputs ---------------------------------------------------------------------------------- */

/* A trie with `names`, and with `again` as re-exports from library 1. */
static inline struct exti_span make_trie(struct fixture *f, const char *const *names, size_t n,
                                         uint64_t address, const char *again)
{
    struct macho_export list[8] = {{0}};
    struct exti_buf trie = exti__buf(1 << 20);
    uint8_t *p;

    for (size_t i = 0; i < n; i++)
        list[i] = (struct macho_export){.name = names[i], .address = address, .import_name = ""};
    if (again)
        list[n++] = (struct macho_export){
            .name = again, .flags = EXPORT_SYMBOL_FLAGS_REEXPORT, .other = 1, .import_name = ""};
    assert_ok(exti__macho_trie_build(list, n, &trie, &f->err), &f->err);
    p = test_alloc(f->t, trie.n);
    memcpy(p, trie.p, trie.n);
    n = trie.n;
    exti__buf_free(&trie);
    return exti__span(p, n);
}

/* Makes the last opened file export them. */
static inline void export(struct fixture *f, const char *const *names, size_t n, const char *again)
{
    f->m.pieces[f->m.pieces[MACHO_EXPORT].present ? MACHO_EXPORT : MACHO_EXPORTS_TRIE].s =
        make_trie(f, names, n, f->toy.data + 48, again);
}

static inline void new_build(struct fixture *f)
{
    clear_build(f);
    f->b = (struct macho_build){
        .f = &f->m, .opts = &f->opts, .header_flags = f->m.flags, .bind_ordinal = 4};
    for (size_t i = 0; i < ARRAY_SIZE(f->ordinals); i++)
        f->ordinals[i] = (int32_t)i + 1;
    f->b.ordinals = f->ordinals;
    f->opts = (struct exti_rewrite_opts){.size = sizeof f->opts};
}

static inline void open_build(struct fixture *f, struct exti_span file)
{
    clear(f);
    assert_ok(exti__macho_open(file, &f->m, &f->err), &f->err);
    new_build(f);
}

static inline void make_input(struct fixture *f, struct macho_toy_opts o)
{
    macho_toy_make(&f->toy, o);
    open_build(f, exti__span(f->toy.b, f->toy.n));
}

/* Makes a library that exports `names` and `again`; the trie replaces all its opcodes. */
static inline void provide_these(struct fixture *f, struct macho_toy *toy, const char *const *names,
                                 size_t n, const char *again)
{
    struct exti_span trie = make_trie(f, names, n, 0x1000, again);
    size_t info;

    macho_toy_make(toy, (struct macho_toy_opts){.bundle = true});
    info = mtoy_find(toy, LC_DYLD_INFO_ONLY, 0);
    memset(toy->b + info + 8, 0, 40);
    memset(toy->b + toy->rebase, 0, toy->starts - toy->rebase);
    mtoy_put(toy, info + 40, 4, toy->rebase);
    mtoy_put(toy, info + 44, 4, toy->starts - toy->rebase);
    assert_true(trie.n <= toy->starts - toy->rebase);
    memcpy(toy->b + toy->rebase, trie.p, trie.n);
    f->bind[f->b.bind_count++] = exti__span(toy->b, toy->n);
    f->b.bind = f->bind;
}

/* A library that exports _PyFlat and re-exports _PyOptional. */
static inline void provide(struct fixture *f)
{
    static const char *const names[] = {"_PyFlat", "_other"};

    provide_these(f, &f->provider, names, 2, "_PyOptional");
}

static inline int rebind(struct fixture *f)
{
    f->err = (struct exti_error){0};
    return exti__macho_rebind(&f->b, &f->err);
}

/* ---- outputs --------------------------------------------------------------------------------- */

static inline void append_line(struct fixture *f, const char *line)
{
    assert_ok(exti__buf_append(&f->text, line, strlen(line), &f->err), &f->err);
}

static inline char *said(struct fixture *f)
{
    char *s;

    assert_ok(exti__buf_append(&f->text, "", 1, &f->err), &f->err);
    s = test_format(f->t, "%s", (char *)f->text.p);
    f->text.n = 0;
    return s;
}

static inline int tell_bind(void *user, const struct macho_bind *b, struct exti_error *err)
{
    struct fixture *f = user;

    (void)err;
    if (b->is_override)
        append_line(f, test_format(f->t, "%s overrides\n", b->symbol));
    else
        append_line(f, test_format(f->t, "%s%s %d +%llx\n", b->symbol, b->flags & 1 ? "?" : "",
                                   b->ordinal, (unsigned long long)b->offset));
    return 0;
}

/* The copy's bindings: "symbol library +slot", or "symbol library" for imports. */
static inline char *bound(struct fixture *f)
{
    static const enum macho_piece_kind streams[] = {MACHO_BIND, MACHO_LAZY_BIND, MACHO_WEAK_BIND};
    struct macho_file after = f->m;
    struct macho_chained c;

    after.dylib_count = 0xffff;
    for (size_t i = 0; i < MACHO_PIECES; i++)
        after.pieces[i].s = exti__macho_piece(&f->b, (enum macho_piece_kind)i);
    for (size_t i = 0; !after.pieces[MACHO_CHAINED_FIXUPS].s.n && i < ARRAY_SIZE(streams); i++) {
        assert_ok(exti__macho_binds(&after, streams[i], tell_bind, f, &f->err), &f->err);
        append_line(f, ".\n");
    }
    if (!after.pieces[MACHO_CHAINED_FIXUPS].s.n)
        return said(f);
    assert_ok(exti__macho_chained_open(&after, &c, &f->err), &f->err);
    for (uint32_t i = 0; i < c.imports_count; i++) {
        struct macho_import im;

        assert_ok(exti__macho_chained_import(&c, i, &im, &f->err), &f->err);
        append_line(f, test_format(f->t, "%s%s %d\n", im.name, im.weak ? "?" : "", im.ordinal));
    }
    return said(f);
}

/* The n_desc of the toy's undefined symbols: _PyFlat, _PyOptional, _malloc. */
static inline char *descs(struct fixture *f)
{
    struct exti_span s = exti__macho_piece(&f->b, MACHO_SYMBOLS);

    for (size_t i = MTOY_DEFINED; i < MTOY_SYMBOLS; i++)
        append_line(f, test_format(f->t, "%02x%02x ", s.p[16 * i + 7], s.p[16 * i + 6]));
    return said(f);
}

/* The pieces that were replaced, a letter each: bind, weak, lazy, chained, trie, symbols. */
static const char *replaced(struct fixture *f)
{
    static const struct {
        enum macho_piece_kind kind;
        const char *letter;
    } pieces[] = {{MACHO_BIND, "b"},           {MACHO_WEAK_BIND, "w"}, {MACHO_LAZY_BIND, "l"},
                  {MACHO_CHAINED_FIXUPS, "c"}, {MACHO_EXPORT, "t"},    {MACHO_EXPORTS_TRIE, "t"},
                  {MACHO_SYMBOLS, "s"},        {MACHO_REBASE, "?"},    {MACHO_STRINGS, "?"}};
    const char *out = "";

    for (size_t i = 0; i < ARRAY_SIZE(pieces); i++)
        if (f->b.pieces[pieces[i].kind].replaced)
            out = test_format(f->t, "%s%s", out, pieces[i].letter);
    return out;
}

#endif
