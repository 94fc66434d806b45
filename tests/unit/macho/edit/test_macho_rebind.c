#include "macho/edit/macho_targets.h"
#include "tests/unit/macho/macho_forms.h"
#include "tests/unit/macho/macho_rebind.h"

/* ---- what needs nothing ---------------------------------------------------------------------- */

static void a_file_without_look_ups_keeps_its_bytes(void **state)
{
    static const char *const unrelated[] = {"_PyFla", "_PyFlat2"};
    struct fixture *f = *state;

    for (int chained = 0; chained < 2; chained++) {
        make_input(f, (struct macho_toy_opts){.chained = chained});
        assert_ok(rebind(f), &f->err);
        assert_string_equal(replaced(f), "");
        f->b.ordinals = NULL;
        assert_ok(rebind(f), &f->err);
        /* None of the names that it looks up is exported by `bind`, defined here, or weak. */
        f->b.ordinals = f->ordinals;
        provide_these(f, &f->provider, unrelated, 2, NULL);
        f->opts.flags = EXTI_RW_SYMBOLIC;
        assert_ok(rebind(f), &f->err);
        assert_string_equal(replaced(f), "");
        assert_int_equal(f->b.header_flags, f->m.flags);
    }
}

/* ---- flat look-ups --------------------------------------------------------------------------- */

static void flat_look_ups_go_to_the_library_that_exports_them(void **state)
{
    struct fixture *f = *state;

    make_input(f, (struct macho_toy_opts){0});
    provide(f);
    assert_ok(rebind(f), &f->err);
    assert_string_equal(bound(f), "_PyFlat 4 +0\n_malloc 1 +8\n.\n_PyOptional? 4 +10\n.\n"
                                  "_toy_weak -3 +18\n.\n");
    assert_string_equal(descs(f), "0400 0440 0100 ");
    assert_string_equal(replaced(f), "bls");
    /* In place: only the library's byte differs. */
    assert_int_equal(f->b.pieces[MACHO_LAZY_BIND].data.n, f->toy.lazy_n);
    f->toy.b[f->toy.lazy + 2] = 0x14;
    assert_memory_equal(f->b.pieces[MACHO_LAZY_BIND].data.p, f->toy.b + f->toy.lazy, f->toy.lazy_n);
}

static void imports_of_every_format_go_to_the_library_that_exports_them(void **state)
{
    static const int32_t ordinals[] = {4, 240, 241, 65520};
    struct fixture *f = *state;

    for (uint32_t format = 1; format <= 3; format++)
        for (size_t i = 0; i < ARRAY_SIZE(ordinals); i++) {
            make_input(f, (struct macho_toy_opts){.chained = true, .imports = format});
            provide(f);
            f->b.bind_ordinal = ordinals[i];
            assert_ok(rebind(f), &f->err);
            assert_string_equal(bound(f), test_format(f->t,
                                                      "_PyFlat %d\n_malloc 1\n_PyOptional? %d\n"
                                                      "_toy_weak -3\n",
                                                      ordinals[i], ordinals[i]));
            assert_string_equal(descs(f), i == 0   ? "0400 0440 0100 "
                                          : i == 1 ? "f000 f040 0100 "
                                          : i == 2 ? "f100 f140 0100 "
                                                   : "fe00 fe40 0100 ");
            assert_string_equal(replaced(f), "cs");
        }
    make_input(f, (struct macho_toy_opts){.chained = true});
    provide(f);
    f->b.bind_ordinal = 65521;
    assert_exti(rebind(f), EXTI_E_UNSUPPORTED, &f->err, ANY_OFFSET);
    assert_says(&f->err, "library ordinal 65521");
}

static void lazy_bindings_past_library_15_become_eager(void **state)
{
    static const int32_t ordinals[] = {15, 16, 200};
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(ordinals); i++) {
        make_input(f, (struct macho_toy_opts){0});
        provide(f);
        f->b.bind_ordinal = ordinals[i];
        assert_ok(rebind(f), &f->err);
        assert_string_equal(bound(f),
                            test_format(f->t,
                                        "_PyFlat %d +0\n_malloc 1 +8\n%s_PyOptional? %d +10\n%s"
                                        ".\n_toy_weak -3 +18\n.\n",
                                        ordinals[i], ordinals[i] > 15 ? "" : ".\n", ordinals[i],
                                        ordinals[i] > 15 ? ".\n" : ""));
        assert_int_equal(f->b.pieces[MACHO_LAZY_BIND].data.n, i ? 0 : f->toy.lazy_n);
        assert_int_equal(f->b.pieces[MACHO_BIND].data.n % 8, 0);
    }
}

/* Replaces the toy's lazy stream. */
static void set_lazy(struct fixture *f, const void *bytes, size_t n)
{
    f->m.pieces[MACHO_LAZY_BIND].s = exti__span(bytes, n);
    f->m.pieces[MACHO_LAZY_BIND].s.base = 0;
}

static void wide_lazy_libraries_keep_their_width(void **state)
{
    static const char wide[] = "\x71\x10\x20\x82\0\x40_malloc\0\x90\0"
                               "\x71\x18\x11\x40_a\0\x90\0";
    static const struct {
        int32_t to;
        const char *opcode;
        size_t n;
    } cases[] = {
        {3, "\x20\x83\0", 3}, {300, "\x20\xac\2", 3}, {16383, "\x20\xff\x7f", 3}, {16384, NULL, 0}};
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        make_input(f, (struct macho_toy_opts){0});
        set_lazy(f, wide, sizeof wide - 1);
        f->ordinals[1] = cases[i].to;
        assert_ok(rebind(f), &f->err);
        assert_string_equal(replaced(f), cases[i].opcode ? "l" : "bl");
        if (cases[i].opcode)
            assert_memory_equal(f->b.pieces[MACHO_LAZY_BIND].data.p + 2, cases[i].opcode,
                                cases[i].n);
        else
            assert_int_equal(f->b.pieces[MACHO_LAZY_BIND].data.n, 0);
    }
    /* Binds to the file itself, and with a negative ordinal that this opcode cannot hold. */
    make_input(f, (struct macho_toy_opts){0});
    set_lazy(f, "\x71\x10\x20\1\x40_PyFlat\0\x90\0", 15);
    provide(f);
    f->ordinals[0] = 0;
    f->b.bind_ordinal = 0;
    assert_exti(rebind(f), EXTI_E_UNSUPPORTED, &f->err, EXTI_NO_OFFSET); /* _malloc */
}

static void lazy_bindings_that_share_an_opcode_become_eager_when_they_part(void **state)
{
    static const char shared[] = "\x71\x10\x3e\x40_PyFlat\0\x90\0\x71\x18\x40_stays\0\x90\0",
                      same[] = "\x71\x10\x3e\x40_PyFlat\0\x90\0\x71\x18\x40_PyOptional\0\x90\0";
    struct fixture *f = *state;

    make_input(f, (struct macho_toy_opts){0});
    set_lazy(f, shared, sizeof shared - 1);
    provide(f);
    assert_ok(rebind(f), &f->err);
    assert_string_equal(bound(f), "_PyFlat 4 +0\n_malloc 1 +8\n_PyFlat 4 +10\n_stays -2 +18\n.\n.\n"
                                  "_toy_weak -3 +18\n.\n");
    make_input(f, (struct macho_toy_opts){0});
    set_lazy(f, same, sizeof same - 1);
    provide(f);
    assert_ok(rebind(f), &f->err);
    assert_string_equal(bound(f), "_PyFlat 4 +0\n_malloc 1 +8\n.\n_PyFlat 4 +10\n"
                                  "_PyOptional 4 +18\n.\n_toy_weak -3 +18\n.\n");
}

static void look_ups_in_the_main_program_go_to_the_library_too(void **state)
{
    struct fixture *f = *state;

    make_input(f, (struct macho_toy_opts){.chained = true});
    provide(f);
    f->toy.b[f->toy.chained + 80] = 0xff;
    f->toy.b[f->toy.symbols + 3 * 16 + 7] = EXECUTABLE_ORDINAL;
    assert_ok(rebind(f), &f->err);
    assert_string_equal(bound(f), "_PyFlat 4\n_malloc 1\n_PyOptional? 4\n_toy_weak -3\n");
    assert_string_equal(descs(f), "0400 0440 0100 ");
    make_input(f, (struct macho_toy_opts){0});
    provide(f);
    f->toy.b[f->toy.bind] = 0x3f;
    f->toy.b[f->toy.lazy + 2] = 0x3f;
    assert_ok(rebind(f), &f->err);
    assert_string_equal(bound(f), "_PyFlat 4 +0\n_malloc 1 +8\n.\n_PyOptional? 4 +10\n.\n"
                                  "_toy_weak -3 +18\n.\n");
}

static void only_exported_symbols_are_rebound(void **state)
{
    static const char *const one[] = {"_PyOptional"};
    struct fixture *f = *state;

    make_input(f, (struct macho_toy_opts){0});
    provide_these(f, &f->provider, one, 1, NULL);
    assert_ok(rebind(f), &f->err);
    assert_string_equal(replaced(f), "ls");
    assert_string_equal(bound(f), "_PyFlat -2 +0\n_malloc 1 +8\n.\n_PyOptional? 4 +10\n.\n"
                                  "_toy_weak -3 +18\n.\n");
    assert_string_equal(descs(f), "fe00 0440 0100 ");
}

static void every_given_library_counts(void **state)
{
    static const char *const one[] = {"_PyOptional"}, *const other[] = {"_PyFlat"};
    static struct macho_toy second;
    struct fixture *f = *state;

    make_input(f, (struct macho_toy_opts){.chained = true});
    provide_these(f, &f->provider, one, 1, NULL);
    provide_these(f, &second, other, 1, NULL);
    assert_ok(rebind(f), &f->err);
    assert_string_equal(bound(f), "_PyFlat 4\n_malloc 1\n_PyOptional? 4\n_toy_weak -3\n");
    /* This library cannot be read. */
    make_input(f, (struct macho_toy_opts){.chained = true});
    f->b.bind = f->bind;
    f->b.bind_count = 2;
    second.b[0] = 0;
    assert_int_equal(rebind(f), EXTI_E_FORMAT);
    second.b[0] = 0xcf;
    memset(second.b + second.rebase, 0x80, second.starts - second.rebase);
    assert_int_equal(rebind(f), EXTI_E_FORMAT);
    assert_string_equal(replaced(f), "");
}

/* ---- the file's own symbols ------------------------------------------------------------------ */

static void own_symbols_win_if_requested(void **state)
{
    static const char *const own[] = {"_PyFlat", "_toy_weak"};
    struct fixture *f = *state;

    for (int chained = 0; chained < 2; chained++) {
        make_input(f, (struct macho_toy_opts){.chained = chained});
        provide(f);
        export(f, own, 2, "_PyOptional");
        f->opts.flags = EXTI_RW_SYMBOLIC;
        assert_ok(rebind(f), &f->err);
        /* Re-exported names are not defined here. */
        assert_string_equal(bound(f), chained ? "_PyFlat 0\n_malloc 1\n_PyOptional? 4\n"
                                                "_toy_weak -3\n"
                                              : "_PyFlat 0 +0\n_malloc 1 +8\n.\n"
                                                "_PyOptional? 4 +10\n.\n_toy_weak -3 +18\n.\n");
        assert_string_equal(descs(f), "0000 0440 0100 ");
    }
    /* Without the option, weak names stay with the library; a library's own copy keeps its own. */
    make_input(f, (struct macho_toy_opts){0});
    provide(f);
    export(f, own, 2, NULL);
    f->b.bind_ordinal = BIND_SPECIAL_DYLIB_SELF;
    assert_ok(rebind(f), &f->err);
    assert_string_equal(bound(f), "_PyFlat 0 +0\n_malloc 1 +8\n.\n_PyOptional? 0 +10\n.\n"
                                  "_toy_weak -3 +18\n.\n");
}

/* ---- libraries that are removed or renumbered ------------------------------------------------ */

static void renumbered_libraries_keep_their_bindings(void **state)
{
    static const char *const names[] = {"_toy_func"};
    struct fixture *f = *state;

    for (int chained = 0; chained < 2; chained++) {
        struct macho_export e;
        struct exti_span trie;
        bool found;

        make_input(f, (struct macho_toy_opts){.chained = chained});
        export(f, names, 1, "_again");
        f->ordinals[0] = 300;
        assert_ok(rebind(f), &f->err);
        assert_string_equal(replaced(f), chained ? "cts" : "bts");
        assert_string_equal(bound(f), chained ? "_PyFlat -2\n_malloc 300\n_PyOptional? -2\n"
                                                "_toy_weak -3\n"
                                              : "_PyFlat -2 +0\n_malloc 300 +8\n.\n"
                                                "_PyOptional? -2 +10\n.\n_toy_weak -3 +18\n.\n");
        assert_string_equal(descs(f), "fe00 fe40 fe00 ");
        trie = exti__macho_piece(&f->b, chained ? MACHO_EXPORTS_TRIE : MACHO_EXPORT);
        assert_ok(exti__macho_trie_find(trie, "_again", &found, &e, &f->err), &f->err);
        assert_true(found);
        assert_int_equal(e.other, 300);
        assert_ok(exti__macho_trie_find(trie, "_toy_func", &found, &e, &f->err), &f->err);
        assert_int_equal(e.address, f->toy.data + 48);
    }
}

static void removed_libraries_must_not_be_used(void **state)
{
    static const char *const names[] = {"_malloc"}, *const own[] = {"_toy_func"};
    struct fixture *f = *state;

    for (int chained = 0; chained < 2; chained++) {
        make_input(f, (struct macho_toy_opts){.chained = chained});
        f->ordinals[0] = 0;
        assert_exti(rebind(f), EXTI_E_UNSUPPORTED, &f->err, EXTI_NO_OFFSET);
        assert_says(&f->err, "_malloc is bound to " MTOY_SYSTEM ", which the edits remove");
        /* Another library may have the symbol. */
        make_input(f, (struct macho_toy_opts){.chained = chained});
        f->ordinals[0] = 0;
        provide_these(f, &f->provider, names, 1, NULL);
        assert_ok(rebind(f), &f->err);
        assert_contains(bound(f), "_malloc 4");
        assert_string_equal(descs(f), "fe00 fe40 0400 ");
    }
    /* Nothing refers to these two libraries. */
    make_input(f, (struct macho_toy_opts){.chained = true});
    f->ordinals[1] = f->ordinals[2] = 0;
    assert_ok(rebind(f), &f->err);
    assert_string_equal(replaced(f), "");
    /* Only the symbol table names this library. */
    make_input(f, (struct macho_toy_opts){.chained = true});
    f->ordinals[1] = 0;
    f->toy.b[f->toy.symbols + 5 * 16] += 2; /* "alloc" */
    f->toy.b[f->toy.symbols + 5 * 16 + 7] = 2;
    assert_ok(rebind(f), &f->err);
    assert_string_equal(descs(f), "fe00 fe40 fe00 ");
    /* Lazily. */
    make_input(f, (struct macho_toy_opts){0});
    f->ordinals[1] = 0;
    set_lazy(f, "\x71\x10\x12\x40_lazy\0\x90\0", 12);
    assert_exti(rebind(f), EXTI_E_UNSUPPORTED, &f->err, EXTI_NO_OFFSET);
    /* Re-exported. */
    make_input(f, (struct macho_toy_opts){.chained = true});
    export(f, own, 1, "_again");
    f->ordinals[0] = 0;
    provide_these(f, &f->provider, names, 1, NULL);
    assert_exti(rebind(f), EXTI_E_UNSUPPORTED, &f->err, EXTI_NO_OFFSET);
    assert_says(&f->err, "_again is re-exported from " MTOY_SYSTEM);
}

/* Symbols that nothing binds follow the same rules. */
static void unbound_symbols_follow_the_same_rules(void **state)
{
    static const char *const names[] = {"PyFlat", "alloc"};
    struct fixture *f = *state;

    for (int chained = 0; chained < 2; chained++) {
        make_input(f, (struct macho_toy_opts){.chained = chained});
        f->ordinals[0] = 0;
        f->toy.b[f->toy.symbols + 3 * 16] += 1;
        f->toy.b[f->toy.symbols + 5 * 16] += 2;
        provide_these(f, &f->provider, names, 2, "_malloc");
        assert_ok(rebind(f), &f->err);
        assert_contains(bound(f), "_PyFlat -2");
        assert_string_equal(descs(f), "0400 fe40 0400 ");
    }
}

/* ---- weak definitions ------------------------------------------------------------------------ */

static uint32_t weak_flags(const struct fixture *f)
{
    return f->b.header_flags & (MH_WEAK_DEFINES | MH_BINDS_TO_WEAK);
}

static void own_weak_definitions_stay_with_the_copy(void **state)
{
    struct fixture *f = *state;

    make_input(f, (struct macho_toy_opts){.chained = true});
    f->opts.flags = EXTI_RW_CLEAR_UNIQUE;
    assert_ok(rebind(f), &f->err);
    assert_string_equal(bound(f), "_PyFlat -2\n_malloc 1\n_PyOptional? -2\n_toy_weak 0\n");
    assert_string_equal(replaced(f), "c");
    assert_int_equal(weak_flags(f), 0);
    /* Its slot is rebased to the definition. */
    make_input(f, (struct macho_toy_opts){0});
    f->opts.flags = EXTI_RW_CLEAR_UNIQUE;
    assert_ok(rebind(f), &f->err);
    assert_string_equal(replaced(f), "w");
    assert_string_equal(bound(f), "_PyFlat -2 +0\n_malloc 1 +8\n.\n_PyOptional? -2 +10\n.\n.\n");
    assert_int_equal(f->b.pieces[MACHO_WEAK_BIND].data.n, 0);
    assert_int_equal(weak_flags(f), 0);
}

static void foreign_weak_definitions_are_still_looked_up(void **state)
{
    static const char *const names[] = {"_toy_func"};
    struct fixture *f = *state;

    for (int chained = 0; chained < 2; chained++) {
        make_input(f, (struct macho_toy_opts){.chained = chained});
        export(f, names, 1, "_toy_weak");
        f->opts.flags = EXTI_RW_CLEAR_UNIQUE;
        assert_ok(rebind(f), &f->err);
        assert_string_equal(replaced(f), "");
        assert_int_equal(weak_flags(f), MH_BINDS_TO_WEAK);
    }
}

/* Replaces the toy's weak stream. */
static void set_weak(struct fixture *f, const void *bytes, size_t n)
{
    f->m.pieces[MACHO_WEAK_BIND].s = exti__span(bytes, n);
    f->opts.flags = EXTI_RW_CLEAR_UNIQUE;
}

static void slots_without_a_definition_in_them_are_bound_to_the_file(void **state)
{
    static const char two[] = "\x40_toy_weak\0\x71\x18\x90\x71\x00\x90",
                      bound_too[] = "\x40_toy_weak\0\x71\x08\x90",
                      addend[] = "\x40_toy_weak\0\x60\x08\x71\x18\x90",
                      outside[] = "\x40_toy_weak\0\x71\x80\x1f\x90";
    struct fixture *f = *state;

    /* Slot 0x18 holds something else. */
    make_input(f, (struct macho_toy_opts){0});
    f->opts.flags = EXTI_RW_CLEAR_UNIQUE;
    f->toy.b[f->toy.data + 0x18] ^= 8;
    assert_ok(rebind(f), &f->err);
    assert_string_equal(bound(f), "_PyFlat -2 +0\n_malloc 1 +8\n_toy_weak 0 +18\n.\n"
                                  "_PyOptional? -2 +10\n.\n.\n");
    /* The same slot with another addend, then with the right one. */
    make_input(f, (struct macho_toy_opts){0});
    set_weak(f, addend, sizeof addend - 1);
    assert_ok(rebind(f), &f->err);
    assert_contains(bound(f), "_toy_weak 0 +18\n");
    make_input(f, (struct macho_toy_opts){0});
    set_weak(f, addend, sizeof addend - 1);
    f->toy.b[f->toy.data + 0x18] += 8;
    assert_ok(rebind(f), &f->err);
    assert_string_equal(replaced(f), "w");
    /* Slot 0 is bound to something else, and never rebased. */
    make_input(f, (struct macho_toy_opts){0});
    set_weak(f, two, sizeof two - 1);
    assert_ok(rebind(f), &f->err);
    assert_string_equal(bound(f), "_PyFlat -2 +0\n_malloc 1 +8\n_toy_weak 0 +0\n.\n"
                                  "_PyOptional? -2 +10\n.\n.\n");
    /* Slot 0x780 is in no part of the file, and nothing else binds it. */
    make_input(f, (struct macho_toy_opts){0});
    set_weak(f, outside, sizeof outside - 1);
    assert_ok(rebind(f), &f->err);
    assert_contains(bound(f), "_toy_weak 0 +f80\n");
    /* A strong binding of the same name. */
    make_input(f, (struct macho_toy_opts){0});
    set_weak(f, bound_too, sizeof bound_too - 1);
    f->m.pieces[MACHO_BIND].s = exti__span("\x51\x71\x08\x11\x40_toy_weak\0\x90", 16);
    assert_ok(rebind(f), &f->err);
    assert_string_equal(bound(f), "_toy_weak 0 +8\n.\n_PyOptional? -2 +10\n.\n.\n");
}

static void overrides_follow_the_bindings_that_they_override(void **state)
{
    static const char weak[] = "\x48_abroad\0\x48_toy_func\0\x40_toy_weak\0\x71\x18\x90"
                               "\x40_zero\0\x71\x20\x90";
    struct fixture *f = *state;

    make_input(f, (struct macho_toy_opts){0});
    set_weak(f, weak, sizeof weak - 1);
    assert_ok(rebind(f), &f->err);
    assert_string_equal(bound(f), "_PyFlat -2 +0\n_malloc 1 +8\n.\n_PyOptional? -2 +10\n.\n"
                                  "_abroad overrides\n_toy_func overrides\n_zero -3 +20\n.\n");
    assert_int_equal(weak_flags(f), MH_BINDS_TO_WEAK);
}

/* A weak definition from a library that is itself a copy: copies take no part in weak look-ups. */
static void weak_definitions_of_copied_libraries_are_bound_to_them(void **state)
{
    static const char *const names[] = {"_toy_func"};
    static const char weak[] = "\x40_malloc\0\x71\x08\x90\x71\x20\x90";
    static const struct exti_needed edits[] = {{.from = "other", .to = "/x"},
                                               {.from = MTOY_SYSTEM, .to = "/copy"}};
    struct fixture *f = *state;

    for (int edited = 0; edited < 2; edited++) {
        make_input(f, (struct macho_toy_opts){.chained = true});
        export(f, names, 1, NULL);
        mtoy_put(&f->toy, f->toy.chained + 84, 1, 0xfd); /* _malloc */
        f->opts.flags = EXTI_RW_CLEAR_UNIQUE;
        f->opts.needed = edits;
        f->opts.needed_count = edited ? 2 : 1;
        f->ordinals[0] = 2;
        f->ordinals[1] = 1;
        assert_ok(rebind(f), &f->err);
        assert_string_equal(bound(f), test_format(f->t,
                                                  "_PyFlat -2\n_malloc %d\n_PyOptional? -2\n"
                                                  "_toy_weak -3\n",
                                                  edited ? 2 : -3));
        /* The same with opcodes: one slot has a second binding, the other has none. */
        make_input(f, (struct macho_toy_opts){0});
        set_weak(f, weak, sizeof weak - 1);
        f->opts.needed = edits;
        f->opts.needed_count = edited ? 2 : 1;
        assert_ok(rebind(f), &f->err);
        assert_string_equal(bound(f), edited ? "_PyFlat -2 +0\n_malloc 1 +8\n_malloc 1 +20\n.\n"
                                               "_PyOptional? -2 +10\n.\n.\n"
                                             : "_PyFlat -2 +0\n_malloc 1 +8\n.\n"
                                               "_PyOptional? -2 +10\n.\n"
                                               "_malloc -3 +8\n_malloc -3 +20\n.\n");
        assert_int_equal(weak_flags(f), edited ? 0 : MH_BINDS_TO_WEAK);
    }
}

/* ---- linked files ---------------------------------------------------------------------------- */

/* The lines of `before` with the libraries that the rules lead to. */
static char *expected(struct fixture *f, char *before, int32_t bind)
{
    for (char *line = strtok(before, "\n"); line; line = strtok(NULL, "\n")) {
        char *blank = strchr(line, ' ');
        long was = blank ? strtol(blank + 1, NULL, 10) : 0;
        bool py = !strncmp(line, "_Py_", 4),
             own = !strncmp(line, "_shared ", 8) || !strncmp(line, "_shared_state ", 14);

        if (!blank) {
            append_line(f, ".\n");
            continue;
        }
        if (py && (was == -2 || was == -1))
            was = bind;
        if (own && was == -3) {
            if (strchr(blank + 1, '+'))
                continue; /* no longer in the weak stream */
            was = 0;
        }
        append_line(f, test_format(f->t, "%.*s %ld%s\n", (int)(blank - line), line, was,
                                   strchr(blank + 1, ' ') ? strchr(blank + 1, ' ') : ""));
    }
    return said(f);
}

static void linked_files_are_bound_as_the_rules_say(void **state)
{
    static const char *const provided[] = {"_Py_GetVersion", "_Py_Flag"};
    struct fixture *f = *state;

    macho_skip_without_tools();
    for (size_t a = 0; a < ARRAY_SIZE(macho_archs); a++)
        for (size_t i = 0; i < ARRAY_SIZE(macho_forms); i++) {
            const struct macho_form *form = &macho_forms[i];
            int32_t bind = (int32_t)form->libraries + 2;
            char *before, *after;

            open_build(f, macho_form_link(f->t, macho_archs[a], form));
            before = bound(f);
            provide_these(f, &f->provider, provided, 2, NULL);
            f->b.bind_ordinal = bind;
            f->opts.flags = EXTI_RW_CLEAR_UNIQUE;
            assert_ok(rebind(f), &f->err);
            after = bound(f);
            /* In the merged list, the lazy bindings follow the eager ones. */
            if (!form->chained && bind > 15) {
                char *dot = strstr(before, ".\n");

                memmove(dot, dot + 2, strlen(dot + 2) + 1);
                dot = strstr(dot, ".\n");
                before = test_format(f->t, "%.*s.\n%s", (int)(dot - before), before, dot);
            }
            assert_string_equal(after, expected(f, before, bind));
            assert_non_null(strstr(after, test_format(f->t, "_Py_Flag %d", bind)));
            assert_null(strstr(after, "_Py_Flag -"));
            assert_int_equal(weak_flags(f), MH_BINDS_TO_WEAK); /* shared_elsewhere */
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rebind_test(a_file_without_look_ups_keeps_its_bytes),
        rebind_test(flat_look_ups_go_to_the_library_that_exports_them),
        rebind_test(imports_of_every_format_go_to_the_library_that_exports_them),
        rebind_test(lazy_bindings_past_library_15_become_eager),
        rebind_test(wide_lazy_libraries_keep_their_width),
        rebind_test(lazy_bindings_that_share_an_opcode_become_eager_when_they_part),
        rebind_test(look_ups_in_the_main_program_go_to_the_library_too),
        rebind_test(only_exported_symbols_are_rebound),
        rebind_test(every_given_library_counts),
        rebind_test(own_symbols_win_if_requested),
        rebind_test(renumbered_libraries_keep_their_bindings),
        rebind_test(removed_libraries_must_not_be_used),
        rebind_test(unbound_symbols_follow_the_same_rules),
        rebind_test(own_weak_definitions_stay_with_the_copy),
        rebind_test(foreign_weak_definitions_are_still_looked_up),
        rebind_test(slots_without_a_definition_in_them_are_bound_to_the_file),
        rebind_test(overrides_follow_the_bindings_that_they_override),
        rebind_test(weak_definitions_of_copied_libraries_are_bound_to_them),
        rebind_test(linked_files_are_bound_as_the_rules_say),
    };

    return cmocka_run_group_tests_name("macho/macho_rebind", tests, NULL, NULL);
}
