/* The Mach-O self-check of symbols, function starts, exports and the smaller tables: a toy and a
 * copy of it in which one of them was changed. */
#include "macho/check/macho_check_exports.h"
#include "tests/unit/macho/macho_findings.h"

static size_t symbol(const struct macho_toy *t, size_t i)
{
    return t->symbols + i * NLIST_64_SIZE;
}

/* ---- symbols --------------------------------------------------------------------------------- */

/* Makes _PyFlat, the fourth symbol, a debugging one. */
static void make_stab(struct macho_toy *t, uint8_t type, uint8_t section, uint64_t value)
{
    t->b[symbol(t, 3) + 4] = type;
    t->b[symbol(t, 3) + 5] = section;
    mtoy_put(t, symbol(t, 3) + 6, 2, 0);
    mtoy_put(t, symbol(t, 3) + 8, 8, value);
}

static void debugging_symbols_are_compared_too(void **state)
{
    static const uint8_t types[] = {0x20, 0x24, 0x26, 0x28, 0x2e, 0x44, 0x4e,
                                    0x64, 0x66, 0x84, 0xa4, 0xc0, 0xe0, 0xe8};
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        make_pair(f, &opcodes);
        make_stab(&f->before, types[i], 1, MTOY_BASE + f->before.text);
        f->after = f->before;
        assert_finds(f, NULL, NULL);
        f->after.b[symbol(&f->after, 3) + 8] ^= 4;
        assert_finds(f, NULL, "symbol _PyFlat: type");
    }
}

static void what_a_symbol_says_of_its_library_is_compared(void **state)
{
    struct fixture *f = *state;

    make_pair(f, &opcodes);
    f->after.b[symbol(&f->after, 5) + 6] |= N_WEAK_REF;
    assert_finds(f, NULL, "symbol _malloc: n_desc 0x140; in the original, 0x100");
    make_pair(f, &opcodes);
    f->after.b[symbol(&f->after, 5) + 7] = EXECUTABLE_ORDINAL;
    assert_finds(f, NULL, "symbol _malloc: n_desc 0xff00; in the original, 0x100");
    /* Of a defined one it is no library. */
    make_pair(f, &opcodes);
    f->after.b[symbol(&f->after, 0) + 7] = 1;
    assert_finds(f, NULL, "symbol _toy_func: n_desc 0x100; in the original, 0x0");
}

static void a_symbol_without_a_name_is_compared_by_it(void **state)
{
    struct fixture *f = *state;

    make_pair(f, &opcodes);
    mtoy_put(&f->after, symbol(&f->after, 0), 4, f->after.strings_n + 100);
    assert_ok(run_checks(f, NULL), &f->err);
    assert_true(f->findings > 0);
    f->before = f->after;
    assert_finds(f, NULL, NULL);
}

/* ---- exports --------------------------------------------------------------------------------- */

/* The last command of a file with chained fixups that has no exports trie; its place is still
 * known. */
static void drop_trie(struct macho_toy *t)
{
    const size_t at = mtoy_find(t, LC_DYLD_EXPORTS_TRIE, 0),
                 end = MACH_HEADER_64_SIZE + (size_t)mtoy_get(t, 20, 4);

    assert_true(at != 0);
    memmove(t->b + at, t->b + at + 16, end - at - 16);
    memset(t->b + end - 16, 0, 16);
    mtoy_put(t, 16, 4, --t->ncmds);
    mtoy_put(t, 20, 4, mtoy_get(t, 20, 4) - 16);
    memset(t->b + t->trie, 0, t->trie_n);
}

static void files_without_a_trie_export_their_symbols(void **state)
{
    struct fixture *f = *state;
    struct macho_check c = {.judge = {.quiet = true}};
    struct macho_exports out = {.n = 0};
    struct macho_file file;

    macho_toy_make(&f->before, chained);
    drop_trie(&f->before);
    f->before.b[symbol(&f->before, 2) + 4] |= N_PEXT;
    assert_ok(exti__macho_open(bytes_of(&f->before), &file, &f->err), &f->err);
    assert_ok(exti__macho_exports(&c, &file, &out, &f->err), &f->err);
    assert_int_equal(out.n, 2);
    assert_int_equal(out.v[0].address, f->before.text);
    assert_int_equal(out.v[1].address, f->before.data + 48);
    exti__macho_exports_free(&out);
    exti__macho_close(&file);
}

/* ---- function starts, data in code, the others ----------------------------------------------- */

static void function_starts_end_where_the_originals_do(void **state)
{
    struct fixture *f = *state;

    make_pair(f, &opcodes);
    memset(f->after.b + f->after.starts, 0, 8);
    assert_finds(f, NULL, "function starts: 0x0 where the original has 0x");
    make_pair(f, &opcodes);
    f->after.b[f->after.starts + 2] = 4;
    assert_finds(f, NULL, "function starts: 0x");
    make_pair(f, &opcodes);
    memset(f->after.b + f->after.starts, 0x80, 8);
    assert_finds(f, NULL, "function starts: 0x0 where");
}

/* The place of the function starts holds an entry for data in code instead. */
static void make_data_in_code(struct macho_toy *t)
{
    set_field(t, LC_FUNCTION_STARTS, 0, 8, 8, 0);
    set_field(t, LC_DATA_IN_CODE, 0, 8, 4, t->starts);
    set_field(t, LC_DATA_IN_CODE, 0, 12, 4, 8);
    mtoy_put(t, t->starts, 8, t->text | UINT64_C(0x1000400000000));
}

static void entries_of_data_in_code_are_compared(void **state)
{
    struct fixture *f = *state;

    make_pair(f, &opcodes);
    make_data_in_code(&f->before);
    f->after = f->before;
    assert_finds(f, NULL, NULL);
    f->after.b[f->after.starts] ^= 4;
    assert_finds(f, NULL, "data in code: an entry for 0x");
    f->after = f->before;
    f->after.b[f->after.starts + 6] ^= 2;
    assert_finds(f, NULL, "data in code: an entry for 0x");
    macho_toy_make(&f->after, opcodes);
    assert_finds(f, NULL, "data in code: 0 bytes, not 8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        check_test(debugging_symbols_are_compared_too),
        check_test(what_a_symbol_says_of_its_library_is_compared),
        check_test(a_symbol_without_a_name_is_compared_by_it),
        check_test(files_without_a_trie_export_their_symbols),
        check_test(function_starts_end_where_the_originals_do),
        check_test(entries_of_data_in_code_are_compared),
    };

    return cmocka_run_group_tests_name("macho/check/macho_check_table", tests, NULL, NULL);
}
