/* Rebinding: refused requests and files, and hostile input. */
#include "tests/unit/macho/macho_rebind.h"

/* ---- refusals -------------------------------------------------------------------------------- */

static void private_names_are_for_elf(void **state)
{
    static const struct exti_rename unrelated[] = {{"_z", "_Z"}, {"_PyFla", "_QXFla"}},
                                    refers[] = {{"_z", "_Z"}, {"_PyFlat", "_QXFlat"}},
                                    exports[] = {{"_toy_weak", "_QX"}};
    struct fixture *f = *state;

    for (int chained = 0; chained < 2; chained++) {
        make_input(f, (struct macho_toy_opts){.chained = chained});
        f->opts.renames = unrelated;
        f->opts.rename_count = 2;
        assert_ok(rebind(f), &f->err);
        f->opts.renames = refers;
        assert_exti(rebind(f), EXTI_E_UNSUPPORTED, &f->err, EXTI_NO_OFFSET);
        assert_says(&f->err, "_PyFlat: symbols can be renamed in ELF files only");
        f->opts.renames = exports;
        f->opts.rename_count = 1;
        assert_exti(rebind(f), EXTI_E_UNSUPPORTED, &f->err, EXTI_NO_OFFSET);
    }
}

static void make_classic(struct fixture *f)
{
    make_input(f, (struct macho_toy_opts){0});
    for (int k = MACHO_REBASE; k <= MACHO_LAZY_BIND; k++)
        f->m.pieces[k] = (struct macho_piece){0};
}

static void relocations_are_not_rebound(void **state)
{
    struct fixture *f = *state;

    make_classic(f);
    assert_ok(rebind(f), &f->err);
    f->opts.flags = EXTI_RW_SYMBOLIC;
    assert_ok(rebind(f), &f->err);
    provide(f);
    assert_exti(rebind(f), EXTI_E_UNSUPPORTED, &f->err, f->toy.symbols + 3 * 16);
    assert_says(&f->err, "_PyFlat is bound by relocations");
    make_classic(f);
    f->ordinals[0] = 2;
    assert_exti(rebind(f), EXTI_E_UNSUPPORTED, &f->err, f->toy.symbols + 5 * 16);
    make_classic(f);
    f->ordinals[0] = 0;
    assert_exti(rebind(f), EXTI_E_UNSUPPORTED, &f->err, EXTI_NO_OFFSET);
    make_classic(f);
    f->opts.flags = EXTI_RW_CLEAR_UNIQUE;
    assert_exti(rebind(f), EXTI_E_UNSUPPORTED, &f->err, 24);
    f->m.flags &= ~(MH_WEAK_DEFINES | MH_BINDS_TO_WEAK);
    assert_ok(rebind(f), &f->err);
}

static void a_flat_file_s_symbol_table_names_no_libraries(void **state)
{
    struct fixture *f = *state;

    make_input(f, (struct macho_toy_opts){.chained = true});
    f->m.flags &= ~MH_TWOLEVEL;
    provide(f);
    f->ordinals[0] = 2;
    assert_ok(rebind(f), &f->err);
    assert_string_equal(replaced(f), "c");
    assert_string_equal(bound(f), "_PyFlat 4\n_malloc 2\n_PyOptional? 4\n_toy_weak -3\n");
}

static void malformed_pieces_are_refused(void **state)
{
    static const enum macho_piece_kind kinds[] = {MACHO_REBASE, MACHO_BIND, MACHO_WEAK_BIND,
                                                  MACHO_LAZY_BIND, MACHO_EXPORT};
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        make_input(f, (struct macho_toy_opts){0});
        provide(f);
        f->opts.flags = EXTI_RW_CLEAR_UNIQUE;
        memset(f->toy.b + (f->m.pieces[kinds[i]].s.p - f->toy.b), 0xff, 8);
        assert_exti(rebind(f), EXTI_E_FORMAT, &f->err, ANY_OFFSET);
    }
    make_input(f, (struct macho_toy_opts){0});
    provide(f);
    f->toy.b[f->toy.symbols + 3] = 0xff;
    assert_exti(rebind(f), EXTI_E_FORMAT, &f->err, ANY_OFFSET);
}

static void any_corrupt_byte_is_survived(void **state)
{
    static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
    static const struct exti_needed edit = {.from = MTOY_SYSTEM, .to = "/copy"};
    struct fixture *f = *state;

    for (int chained = 0; chained < 2; chained++) {
        struct exti_span provider;

        make_input(f, (struct macho_toy_opts){.chained = chained});
        provide(f);
        provider = f->bind[0];
        for (size_t at = f->toy.linkedit; at < f->toy.signature; at++)
            for (size_t v = 0; v < ARRAY_SIZE(values); v++) {
                uint8_t was = f->toy.b[at];

                f->toy.b[at] = values[v];
                new_build(f);
                f->b.bind = &provider;
                f->b.bind_count = 1;
                f->opts.flags = EXTI_RW_CLEAR_UNIQUE | EXTI_RW_SYMBOLIC;
                f->opts.needed = &edit;
                f->opts.needed_count = 1;
                f->ordinals[0] = 20;
                f->ordinals[2] = 0;
                rebind(f);
                f->toy.b[at] = was;
            }
    }
}

/* Comparing the name once per binding would take hours. */
static void long_names_with_many_bindings_take_linear_time(void **state)
{
    enum { LENGTH = 400000, TIMES = 400000 };
    struct fixture *f = *state;
    const struct exti_rename never = {"_z", "_Z"};
    char *own = test_alloc(f->t, LENGTH + 1);
    uint8_t *stream = test_alloc(f->t, LENGTH + 64 + 6 * TIMES), *p = stream;
    uint8_t *file = test_alloc(f->t, 8 * (size_t)TIMES);
    size_t n;

    memset(own, 'a', LENGTH);
    make_input(f, (struct macho_toy_opts){0});
    f->m.file = exti__span(file, 8 * (size_t)TIMES);
    export(f, (const char *const[]){own}, 1, NULL);
    memcpy(p, "\x51\x71\0\x11\x40", 5);
    memcpy(p + 5, own, LENGTH + 1);
    p += 5 + LENGTH + 1;
    for (int i = 0; i < TIMES; i++, p += 6)
        memcpy(p, i & 1 ? "\x11\x60\0\x71\0\x90" : "\x12\x60\0\x71\0\x90", 6);
    n = (size_t)(p - stream);
    f->m.pieces[MACHO_BIND].s = exti__span(stream, n);
    f->opts.renames = &never;
    f->opts.rename_count = 1;
    f->opts.flags = EXTI_RW_CLEAR_UNIQUE;
    /* Each change of library would repeat the name. */
    assert_int_equal(rebind(f), EXTI_E_FORMAT);
    assert_says(&f->err, "more than a valid file has");
    /* The same slots in the weak and the eager stream. */
    make_input(f, (struct macho_toy_opts){0});
    f->m.file = exti__span(file, 8 * (size_t)TIMES);
    export(f, (const char *const[]){own}, 1, NULL);
    p = stream + 5 + LENGTH + 1;
    for (int i = 0; i < TIMES; i++, p += 3)
        memcpy(p, "\x71\0\x90", 3);
    n = (size_t)(p - stream);
    f->m.pieces[MACHO_BIND].s = exti__span(stream, n);
    p = test_alloc(f->t, n);
    memcpy(p, stream, n);
    p[3] = 0x51; /* names no library */
    f->m.pieces[MACHO_WEAK_BIND].s = exti__span(p, n);
    f->opts.flags = EXTI_RW_CLEAR_UNIQUE;
    assert_ok(rebind(f), &f->err);
    assert_string_equal(replaced(f), "bw");
}

static void out_of_memory_is_reported(void **state)
{
    static const char *const own[] = {"_PyFlat", "_toy_weak"};
    struct fixture *f = *state;

    for (int chained = 0; chained < 2; chained++) {
        long n = 0;
        int rc;

        do {
            make_input(f, (struct macho_toy_opts){.chained = chained});
            export(f, own, 2, "_again");
            provide(f);
            f->toy.b[f->toy.data + 0x18] ^= 8;
            f->opts.flags = EXTI_RW_CLEAR_UNIQUE;
            f->opts.renames = &(struct exti_rename){"_z", "_Z"};
            f->opts.rename_count = 1;
            f->b.bind_ordinal = 16;
            f->ordinals[0] = 200;
            exti__mem_fail_after(n);
            rc = rebind(f);
            exti__mem_fail_after(-1);
            if (rc)
                assert_exti(rc, EXTI_E_NOMEM, &f->err, EXTI_NO_OFFSET);
        } while (rc && ++n < 200);
        assert_int_equal(rc, 0);
        assert_true(n > 20);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rebind_test(private_names_are_for_elf),
        rebind_test(relocations_are_not_rebound),
        rebind_test(a_flat_file_s_symbol_table_names_no_libraries),
        rebind_test(malformed_pieces_are_refused),
        rebind_test(any_corrupt_byte_is_survived),
        rebind_test(long_names_with_many_bindings_take_linear_time),
        rebind_test(out_of_memory_is_reported),
    };

    return cmocka_run_group_tests_name("macho/macho_rebind_hostile", tests, NULL, NULL);
}
