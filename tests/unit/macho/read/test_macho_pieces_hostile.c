/* Every corrupt field that locates a piece of __LINKEDIT or a string is reported, with its
 * offset. */
#include "tests/unit/macho/macho_corruption.h"

static void corrupt_pieces_are_reported(void **state)
{
    struct fixture *f = *state;
    struct macho_toy *t = &f->toy;

    macho_toy_make(t, (struct macho_toy_opts){0});
    const size_t info = mtoy_find(t, LC_DYLD_INFO_ONLY, 0), symtab = mtoy_find(t, LC_SYMTAB, 0),
                 dysymtab = mtoy_find(t, LC_DYSYMTAB, 0),
                 starts = mtoy_find(t, LC_FUNCTION_STARTS, 0),
                 dic = mtoy_find(t, LC_DATA_IN_CODE, 0),
                 signature = mtoy_find(t, LC_CODE_SIGNATURE, 0);
    const struct corruption table[] = {
        {"LC_DYLD_INFO_ONLY 4: rebase opcodes: is outside of __LINKEDIT, at 0x1ff8", info + 8, 4,
         t->linkedit - 8, EXTI_E_FORMAT, info + 8},
        {"LC_DYLD_INFO_ONLY 4: bind opcodes: is outside of", info + 16, 4, 0xffffffff,
         EXTI_E_FORMAT, info + 16},
        {"LC_DYLD_INFO_ONLY 4: weak bind opcodes: ends outside of __LINKEDIT", info + 28, 4,
         0x10000, EXTI_E_FORMAT, info + 28},
        {"LC_DYLD_INFO_ONLY 4: lazy bind opcodes: ends outside", info + 36, 4, 0xffffffff,
         EXTI_E_FORMAT, info + 36},
        {"LC_DYLD_INFO_ONLY 4: exports trie: ends outside", info + 44, 4, 0x10000, EXTI_E_FORMAT,
         info + 44},
        {"LC_DYLD_INFO_ONLY 4: bind opcodes: shares bytes with the rebase opcodes", info + 12, 4, 9,
         EXTI_E_FORMAT, info + 16},
        {"LC_SYMTAB 5: symbol table: is outside of __LINKEDIT", symtab + 8, 4, 0, EXTI_E_FORMAT,
         symtab + 8},
        {"LC_SYMTAB 5: symbol table: ends outside of __LINKEDIT", symtab + 12, 4, 0x10000000,
         EXTI_E_FORMAT, symtab + 12},
        {"LC_SYMTAB 5: symbol table: ends outside of __LINKEDIT", symtab + 12, 4, UINT32_MAX,
         EXTI_E_FORMAT, symtab + 12},
        {"LC_SYMTAB 5: string table: is outside of __LINKEDIT", symtab + 16, 4, 0x20, EXTI_E_FORMAT,
         symtab + 16},
        {"LC_SYMTAB 5: string table: ends outside of __LINKEDIT", symtab + 20, 4, 0x1000,
         EXTI_E_FORMAT, symtab + 20},
        {"LC_CODE_SIGNATURE 16: code signature: shares bytes with the string table", symtab + 20, 4,
         t->strings_n + 16, EXTI_E_FORMAT, signature + 8},
        {"LC_DYSYMTAB 6: indirect symbol table: is outside", dysymtab + 56, 4, 0, EXTI_E_FORMAT,
         dysymtab + 56},
        {"LC_DYSYMTAB 6: indirect symbol table: ends outside", dysymtab + 60, 4, 0x40000000,
         EXTI_E_FORMAT, dysymtab + 60},
        {"LC_DYSYMTAB 6: table of contents: is outside", dysymtab + 36, 4, 1, EXTI_E_FORMAT,
         dysymtab + 32},
        {"LC_DYSYMTAB 6: module table: is outside", dysymtab + 44, 4, 1, EXTI_E_FORMAT,
         dysymtab + 40},
        {"LC_DYSYMTAB 6: external reference table: is outside", dysymtab + 52, 4, 1, EXTI_E_FORMAT,
         dysymtab + 48},
        {"LC_DYSYMTAB 6: external relocations: is outside", dysymtab + 68, 4, 1, EXTI_E_FORMAT,
         dysymtab + 64},
        {"LC_DYSYMTAB 6: local relocations: is outside", dysymtab + 76, 4, 1, EXTI_E_FORMAT,
         dysymtab + 72},
        {"LC_FUNCTION_STARTS 14: function starts: ends outside", starts + 12, 4, 0x1000,
         EXTI_E_FORMAT, starts + 12},
        {"LC_DATA_IN_CODE 15: data in code: shares bytes", dic + 8, 8,
         (uint64_t)8 << 32 | t->starts, EXTI_E_FORMAT, dic + 8},
        {"LC_DATA_IN_CODE 15: a second data in code, after LC_DATA_IN_CODE 14", starts, 4,
         LC_DATA_IN_CODE, EXTI_E_FORMAT, dic},
        {"LC_DYSYMTAB 6: ilocalsym is 1, not 0", dysymtab + 8, 8, (uint64_t)1 << 32 | 1,
         EXTI_E_FORMAT, dysymtab + 8},
        {"LC_DYSYMTAB 6: iextdefsym is 2, not 0", dysymtab + 16, 4, 2, EXTI_E_FORMAT,
         dysymtab + 16},
        {"LC_DYSYMTAB 6: iextdefsym is 0, not 1", dysymtab + 12, 4, 1, EXTI_E_FORMAT,
         dysymtab + 16},
        {"LC_DYSYMTAB 6: iundefsym is 4, not 3", dysymtab + 24, 4, 4, EXTI_E_FORMAT, dysymtab + 24},
        {"LC_DYSYMTAB 6: iundefsym is 3, not 4294967295", dysymtab + 20, 4, UINT32_MAX,
         EXTI_E_FORMAT, dysymtab + 24},
        {"LC_DYSYMTAB 6: counts 7 symbols, but LC_SYMTAB has 6", dysymtab + 28, 4, 4, EXTI_E_FORMAT,
         dysymtab + 28},
        {"__LINKEDIT: holds bytes that no load command describes", starts, 4, 0x7f,
         EXTI_E_UNSUPPORTED, t->starts},
        {"__LINKEDIT: holds bytes that no load command describes", signature, 4, 0x7f,
         EXTI_E_UNSUPPORTED, t->signature},
        {"LC_DYLD_CHAINED_FIXUPS 14: in addition to LC_DYLD_INFO_ONLY 4", starts, 4,
         LC_DYLD_CHAINED_FIXUPS, EXTI_E_FORMAT, starts},
        {"LC_DYLD_EXPORTS_TRIE 14: in addition to the exports trie of LC_DYLD_INFO_ONLY 4", starts,
         4, LC_DYLD_EXPORTS_TRIE, EXTI_E_FORMAT, starts},
        {"LC_DYSYMTAB 6: local relocations: dyld ignores them", dysymtab + 72, 8,
         (uint64_t)1 << 32 | t->starts, EXTI_E_FORMAT, dysymtab + 76},
        {"LC_DYSYMTAB 6: external relocations: dyld ignores them", dysymtab + 64, 8,
         (uint64_t)1 << 32 | t->starts, EXTI_E_FORMAT, dysymtab + 68},
    };

    assert_corruptions(f, (struct macho_toy_opts){0}, table, ARRAY_SIZE(table));
}

/* Commands that the toy lacks, in place of one with the same structure. */
static void every_kind_of_piece_and_string_is_checked(void **state)
{
    static const struct {
        uint32_t cmd;
        const char *what;
    } pieces[] = {
        {LC_SEGMENT_SPLIT_INFO, "LC_SEGMENT_SPLIT_INFO 14: split info: is outside"},
        {LC_DYLIB_CODE_SIGN_DRS, "LC_DYLIB_CODE_SIGN_DRS 14: signing requirements: is outside"},
        {LC_LINKER_OPTIMIZATION_HINT, "LC_LINKER_OPTIMIZATION_HINT 14: optimization hints: is"},
        {LC_ATOM_INFO, "LC_ATOM_INFO 14: atom info: is outside"},
        {LC_FUNCTION_VARIANTS, "LC_FUNCTION_VARIANTS 14: function variants: is outside"},
        {LC_FUNCTION_VARIANT_FIXUPS, "14: function variant fixups: is outside"},
        {LC_TWOLEVEL_HINTS, "LC_TWOLEVEL_HINTS 14: two-level hints: is outside"},
        {LC_FUNCTION_STARTS, "LC_FUNCTION_STARTS 14: function starts: is outside"},
    };
    static const uint32_t strings[] = {LC_SUB_FRAMEWORK, LC_SUB_UMBRELLA,     LC_SUB_CLIENT,
                                       LC_SUB_LIBRARY,   LC_DYLD_ENVIRONMENT, LC_TARGET_TRIPLE,
                                       LC_LOAD_DYLINKER, LC_ID_DYLINKER};
    struct fixture *f = *state;
    struct macho_toy *t = &f->toy;

    for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
        size_t at;

        macho_toy_make(t, (struct macho_toy_opts){0});
        at = mtoy_find(t, LC_FUNCTION_STARTS, 0);
        mtoy_put(t, at, 4, pieces[i].cmd);
        if (pieces[i].cmd == LC_TWOLEVEL_HINTS)
            mtoy_put(t, at + 12, 4, 2); /* hints of 4 bytes */
        assert_ok(open_toy(f), &f->err);
        mtoy_put(t, at + 8, 4, 8);
        assert_exti(open_toy(f), EXTI_E_FORMAT, &f->err, at + 8);
        assert_says(&f->err, pieces[i].what);
    }
    for (size_t i = 0; i < ARRAY_SIZE(strings); i++) {
        size_t at;

        macho_toy_make(t, (struct macho_toy_opts){0});
        at = mtoy_find(t, LC_RPATH, 0);
        mtoy_put(t, at, 4, strings[i]);
        assert_ok(open_toy(f), &f->err);
        mtoy_put(t, at + 8, 4, 32);
        assert_exti(open_toy(f), EXTI_E_FORMAT, &f->err, at + 8);
        assert_says(&f->err, "13: the string offset is 32, not from 12 to 31");
    }
}

static void symbols_without_a_table_are_reported(void **state)
{
    struct fixture *f = *state;
    struct macho_toy *t = &f->toy;
    size_t symtab, dysymtab;

    macho_toy_make(t, (struct macho_toy_opts){0});
    symtab = mtoy_find(t, LC_SYMTAB, 0);
    dysymtab = mtoy_find(t, LC_DYSYMTAB, 0);
    memset(t->b + t->symbols, 0, MTOY_SYMBOLS * NLIST_64_SIZE);
    memset(t->b + t->strings, 0, t->strings_n);
    mtoy_put(t, symtab, 4, 0x77);
    assert_exti(open_toy(f), EXTI_E_FORMAT, &f->err, dysymtab);
    assert_says(&f->err, "LC_DYSYMTAB 6: there is no LC_SYMTAB");
}

static void corrupt_chained_commands_are_reported(void **state)
{
    struct fixture *f = *state;
    struct macho_toy *t = &f->toy;

    macho_toy_make(t, (struct macho_toy_opts){.arm = true, .chained = true});
    const size_t chained = mtoy_find(t, LC_DYLD_CHAINED_FIXUPS, 0),
                 trie = mtoy_find(t, LC_DYLD_EXPORTS_TRIE, 0);
    const struct corruption table[] = {
        {"LC_DYLD_CHAINED_FIXUPS 4: chained fixups: is outside", chained + 8, 4, 0, EXTI_E_FORMAT,
         chained + 8},
        {"LC_DYLD_CHAINED_FIXUPS 4: chained fixups: ends outside", chained + 12, 4, 0x10000,
         EXTI_E_FORMAT, chained + 12},
        {"LC_DYLD_EXPORTS_TRIE 5: exports trie: is outside", trie + 8, 4, UINT32_MAX, EXTI_E_FORMAT,
         trie + 8},
        {"LC_DYLD_EXPORTS_TRIE 5: exports trie: shares bytes with the chained fixups", trie + 8, 4,
         t->chained + 8, EXTI_E_FORMAT, trie + 8},
        {"LC_DYLD_EXPORTS_TRIE 5: a second exports trie, after LC_DYLD_EXPORTS_TRIE 4", chained, 4,
         LC_DYLD_EXPORTS_TRIE, EXTI_E_FORMAT, trie},
        {"LC_SEGMENT_64 0 __TEXT: cmdsize", mtoy_find(t, LC_SEGMENT_64, 0) + NSECTS, 4, 3,
         EXTI_E_FORMAT, mtoy_find(t, LC_SEGMENT_64, 0) + NSECTS},
        {"LC_SEGMENT_64 1 __DATA: fileoff 0x5000 is not a multiple of the page size 0x4000",
         mtoy_find(t, LC_SEGMENT_64, 1) + FILEOFF, 8, 0x5000, EXTI_E_FORMAT,
         mtoy_find(t, LC_SEGMENT_64, 1) + FILEOFF},
    };

    assert_corruptions(f, (struct macho_toy_opts){.arm = true, .chained = true}, table,
                       ARRAY_SIZE(table));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        read_test(corrupt_pieces_are_reported),
        read_test(every_kind_of_piece_and_string_is_checked),
        read_test(symbols_without_a_table_are_reported),
        read_test(corrupt_chained_commands_are_reported),
    };

    return cmocka_run_group_tests_name("macho/macho_pieces_hostile", tests, NULL, NULL);
}
