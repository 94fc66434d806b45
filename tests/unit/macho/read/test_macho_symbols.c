#include "base/buf.h"
#include "tests/support/exti_test.h"

#include <string.h>

#include "base/mem.h"
#include "macho/read/macho_references.h"
#include "macho/read/macho_symbols.h"
#include "tests/unit/macho/macho_forms.h"
#include "tests/unit/macho/macho_toy.h"

struct fixture {
    struct test *t;
    struct exti_error err;
    struct macho_toy toy;
    struct macho_file m;
    struct exti_buf text;
    size_t n;
};

static int setup(void **state)
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

static int teardown(void **state)
{
    struct fixture *f = *state;
    void *t = f->t;

    exti__mem_fail_after(-1);
    exti__macho_close(&f->m);
    exti__buf_free(&f->text);
    return test_teardown(&t);
}

#define symbols_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static void make_symbols(struct fixture *f, struct macho_toy_opts o)
{
    exti__macho_close(&f->m);
    macho_toy_make(&f->toy, o);
    assert_ok(exti__macho_open(exti__span(f->toy.b, f->toy.n), &f->m, &f->err), &f->err);
}

static void symbols_are_read_with_the_library_they_name(void **state)
{
    static const struct {
        const char *name;
        int32_t ordinal;
        bool undefined;
    } expected[MTOY_SYMBOLS] = {{"_toy_func", 0, false},   {"_toy_value", 0, false},
                                {"_toy_weak", 0, false},   {"_PyFlat", -2, true},
                                {"_PyOptional", -2, true}, {"_malloc", 1, true}};
    struct fixture *f = *state;
    struct macho_nlist n;

    make_symbols(f, (struct macho_toy_opts){0});
    assert_int_equal(exti__macho_symbol_count(&f->m), MTOY_SYMBOLS);
    for (size_t i = 0; i < MTOY_SYMBOLS; i++) {
        assert_ok(exti__macho_symbol(&f->m, i, &n, &f->err), &f->err);
        assert_string_equal(n.name, expected[i].name);
        assert_int_equal(n.at, f->toy.symbols + 16 * i);
        assert_int_equal(exti__macho_is_undefined(&n), expected[i].undefined);
        if (expected[i].undefined)
            assert_int_equal(exti__macho_nlist_ordinal(&f->m, &n), expected[i].ordinal);
    }
    n.desc = EXECUTABLE_ORDINAL << 8;
    assert_int_equal(exti__macho_nlist_ordinal(&f->m, &n), BIND_SPECIAL_DYLIB_MAIN_EXECUTABLE);
    n.desc = SELF_LIBRARY_ORDINAL << 8;
    assert_int_equal(exti__macho_nlist_ordinal(&f->m, &n), BIND_SPECIAL_DYLIB_SELF);
    n.desc = MAX_LIBRARY_ORDINAL << 8 | N_WEAK_REF;
    assert_int_equal(exti__macho_nlist_ordinal(&f->m, &n), 253);
    f->m.flags &= ~MH_TWOLEVEL;
    assert_int_equal(exti__macho_nlist_ordinal(&f->m, &n), BIND_SPECIAL_DYLIB_FLAT_LOOKUP);
    n.type |= 0x20; /* a debugging symbol */
    assert_false(exti__macho_is_undefined(&n));
    n.type = N_UNDF;
    assert_false(exti__macho_is_undefined(&n));
    n = (struct macho_nlist){.type = N_UNDF | N_EXT, .value = 8}; /* a common symbol */
    assert_false(exti__macho_is_undefined(&n));
}

static void names_outside_of_the_string_table_are_refused(void **state)
{
    struct fixture *f = *state;
    struct macho_nlist n;
    struct exti_span *strings;

    make_symbols(f, (struct macho_toy_opts){0});
    strings = &f->m.pieces[MACHO_STRINGS].s;
    mtoy_put(&f->toy, f->toy.symbols, 4, strings->n);
    assert_exti(exti__macho_symbol(&f->m, 0, &n, &f->err), EXTI_E_FORMAT, &f->err,
                f->toy.strings + strings->n);
    mtoy_put(&f->toy, f->toy.symbols, 4, strings->n - 1);
    assert_ok(exti__macho_symbol(&f->m, 0, &n, &f->err), &f->err);
    assert_string_equal(n.name, "");
    mtoy_put(&f->toy, f->toy.symbols, 4, 0);
    assert_ok(exti__macho_symbol(&f->m, 0, &n, &f->err), &f->err);
    assert_string_equal(n.name, "");
    /* In a table without a final NUL, only the names that lack one are wrong. */
    strings->n = 41 + 3; /* cuts _PyOptional */
    assert_ok(exti__macho_symbol(&f->m, 1, &n, &f->err), &f->err);
    assert_string_equal(n.name, "_toy_value");
    assert_exti(exti__macho_symbol(&f->m, 4, &n, &f->err), EXTI_E_FORMAT, &f->err,
                f->toy.strings + 41);
    assert_exti(exti__macho_symbol(&f->m, MTOY_SYMBOLS, &n, &f->err), EXTI_E_FORMAT, &f->err,
                ANY_OFFSET);
}

/* ---- references ------------------------------------------------------------------------------ */

static int append_reference(void *user, const struct macho_reference *r, struct exti_error *err)
{
    struct fixture *f = user;
    const char *line = test_format(f->t, "%s %d%s @%llx\n", r->name, r->ordinal,
                                   r->weak_import ? " weak" : "", (unsigned long long)r->at);

    f->n++;
    return exti__buf_append(&f->text, line, strlen(line), err);
}

static const char *references(struct fixture *f)
{
    f->text.n = f->n = 0;
    assert_ok(exti__macho_references(&f->m, append_reference, f, &f->err), &f->err);
    assert_ok(exti__buf_append(&f->text, "", 1, &f->err), &f->err);
    return (const char *)f->text.p;
}

static void references_are_those_that_dyld_binds(void **state)
{
    struct fixture *f = *state;
    size_t at;

    make_symbols(f, (struct macho_toy_opts){.chained = true});
    at = f->toy.chained + 80;
    assert_string_equal(references(f), test_format(f->t,
                                                   "_PyFlat -2 @%zx\n_malloc 1 @%zx\n"
                                                   "_PyOptional -2 weak @%zx\n_toy_weak -3 @%zx\n",
                                                   at, at + 4, at + 8, at + 12));
    make_symbols(f, (struct macho_toy_opts){0});
    assert_string_equal(references(f),
                        test_format(f->t,
                                    "_PyFlat -2 @%zx\n_malloc 1 @%zx\n_toy_weak -3 @%zx\n"
                                    "_PyOptional -2 weak @%zx\n",
                                    f->toy.bind, f->toy.bind + 14, f->toy.weak, f->toy.lazy + 2));
    /* Without opcodes, the symbol table lists the references. */
    for (int k = MACHO_REBASE; k <= MACHO_LAZY_BIND; k++)
        f->m.pieces[k] = (struct macho_piece){0};
    at = f->toy.symbols;
    assert_string_equal(references(f), test_format(f->t,
                                                   "_PyFlat -2 @%zx\n_PyOptional -2 weak @%zx\n"
                                                   "_malloc 1 @%zx\n",
                                                   at + 48, at + 64, at + 80));
}

static void each_reference_is_reported_once(void **state)
{
    static const char bind[] = "\x51\x71\0\x11\x40_a\0\x90\x90\x12\x40_a\0\x90\x11\x41_a\0\x90"
                               "\x40_a\0\x90\x40_b\0\x90\x12\x40_a\0\x90\0",
                      lazy[] = "\x71\0\x11\x40_b\0\x90\0\x71\0\x13\x40_a\0\x90\0",
                      weak[] = "\x48_a\0\x40_a\0\x71\0\x90";
    struct fixture *f = *state;

    make_symbols(f, (struct macho_toy_opts){0});
    f->m.pieces[MACHO_BIND].s = exti__span(bind, sizeof bind - 1);
    f->m.pieces[MACHO_LAZY_BIND].s = exti__span(lazy, sizeof lazy - 1);
    f->m.pieces[MACHO_WEAK_BIND].s = exti__span(weak, sizeof weak - 1);
    assert_string_equal(references(f), "_a 1 @3\n_a 2 @a\n_a 1 weak @10\n_b 1 @10\n_a -3 @4\n"
                                       "_a 3 @b\n");
}

static void references_of_linked_files_agree_with_llvm_nm(void **state)
{
    struct fixture *f = *state;

    macho_skip_without_tools();
    for (size_t a = 0; a < ARRAY_SIZE(macho_archs); a++)
        for (size_t i = 0; i < ARRAY_SIZE(macho_forms); i++) {
            const char *text;
            char *nm;

            exti__macho_close(&f->m);
            assert_ok(exti__macho_open(macho_form_link(f->t, macho_archs[a], &macho_forms[i]),
                                       &f->m, &f->err),
                      &f->err);
            text = references(f);
            nm = test_must_run(f->t, "llvm-nm", "-u", "-j", test_path(f->t, "form"), (char *)NULL);
            for (char *name = strtok(nm, "\n"); name; name = strtok(NULL, "\n"))
                /* A chained file has no stubs that need dyld_stub_binder. */
                if (!macho_forms[i].chained || strcmp(name, "dyld_stub_binder") != 0)
                    assert_contains(text, test_format(f->t, "%s ", name));
        }
}

static void references_to_missing_libraries_are_refused(void **state)
{
    struct fixture *f = *state;

    make_symbols(f, (struct macho_toy_opts){.chained = true});
    mtoy_put(&f->toy, f->toy.chained + 84, 1, 4);
    assert_exti(exti__macho_references(&f->m, append_reference, f, &f->err), EXTI_E_FORMAT, &f->err,
                f->toy.chained + 84);
    assert_says(&f->err, "_malloc is bound to library 4 of 3");
    make_symbols(f, (struct macho_toy_opts){0});
    for (int k = MACHO_REBASE; k <= MACHO_LAZY_BIND; k++)
        f->m.pieces[k] = (struct macho_piece){0};
    mtoy_put(&f->toy, f->toy.symbols + 80 + 7, 1, 9);
    assert_exti(exti__macho_references(&f->m, append_reference, f, &f->err), EXTI_E_FORMAT, &f->err,
                f->toy.symbols + 80);
    f->toy.b[f->toy.symbols + 80 + 3] = 1;
    assert_exti(exti__macho_references(&f->m, append_reference, f, &f->err), EXTI_E_FORMAT, &f->err,
                ANY_OFFSET);
}

/* Thousands of imports, each named by a suffix of one long name. */
static void overlapping_names_take_linear_time(void **state)
{
    enum { COUNT = 100000, SIZE = 32 + 4 * COUNT + COUNT + 8 };
    struct fixture *f = *state;
    uint8_t *p = test_alloc(f->t, SIZE);

    make_symbols(f, (struct macho_toy_opts){.chained = true});
    exti__put_u32(p + 4, 28, false);
    exti__put_u32(p + 8, 32, false);
    exti__put_u32(p + 12, 32 + 4 * COUNT, false);
    exti__put_u32(p + 16, COUNT, false);
    exti__put_u32(p + 20, DYLD_CHAINED_IMPORT, false);
    for (uint32_t i = 0; i < COUNT; i++)
        exti__put_u32(p + 32 + 4 * i, i << 9 | 1, false);
    memset(p + 32 + 4 * COUNT, 'a', COUNT);
    f->m.pieces[MACHO_CHAINED_FIXUPS].s = exti__span(p, SIZE);
    f->n = 0;
    assert_exti(exti__macho_references(&f->m, append_reference, f, &f->err), EXTI_E_FORMAT, &f->err,
                ANY_OFFSET);
    assert_says(&f->err, "add up to more than a valid file has");
    assert_int_equal(f->n, 0);
}

static void out_of_memory_is_reported(void **state)
{
    struct fixture *f = *state;
    long n = 0;
    int rc;

    make_symbols(f, (struct macho_toy_opts){0});
    assert_ok(exti__buf_zeros(&f->text, 1000, &f->err), &f->err);
    do {
        f->text.n = 0;
        exti__mem_fail_after(n);
        rc = exti__macho_references(&f->m, append_reference, f, &f->err);
        exti__mem_fail_after(-1);
        if (rc)
            assert_exti(rc, EXTI_E_NOMEM, &f->err, EXTI_NO_OFFSET);
    } while (rc && ++n < 20);
    assert_int_equal(rc, 0);
    assert_true(n > 0);
}

static int refuse(void *user, const struct macho_reference *r, struct exti_error *err)
{
    (void)user;
    (void)r;
    (void)err;
    return EXTI_E_HOOK;
}

static void an_error_of_the_callback_ends_the_reading(void **state)
{
    struct fixture *f = *state;

    make_symbols(f, (struct macho_toy_opts){0});
    assert_int_equal(exti__macho_references(&f->m, refuse, NULL, &f->err), EXTI_E_HOOK);
    f->toy.b[f->toy.bind] = 0xff;
    assert_exti(exti__macho_references(&f->m, refuse, NULL, &f->err), EXTI_E_FORMAT, &f->err,
                f->toy.bind);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        symbols_test(symbols_are_read_with_the_library_they_name),
        symbols_test(names_outside_of_the_string_table_are_refused),
        symbols_test(references_are_those_that_dyld_binds),
        symbols_test(each_reference_is_reported_once),
        symbols_test(references_of_linked_files_agree_with_llvm_nm),
        symbols_test(references_to_missing_libraries_are_refused),
        symbols_test(overlapping_names_take_linear_time),
        symbols_test(out_of_memory_is_reported),
        symbols_test(an_error_of_the_callback_ends_the_reading),
    };

    return cmocka_run_group_tests_name("macho/macho_symbols", tests, NULL, NULL);
}
