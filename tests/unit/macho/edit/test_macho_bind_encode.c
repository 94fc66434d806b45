#include "macho/edit/macho_bind_encode.h"
#include "tests/unit/macho/macho_bind_lists.h"
#include "tests/unit/macho/macho_forms.h"

static void assert_same_list(struct fixture *f, const struct macho_bind *list, size_t n)
{
    assert_int_equal(f->n, n);
    for (size_t i = 0; i < n; i++) {
        const struct macho_bind *a = &f->list[i], *b = &list[i];

        assert_string_equal(a->symbol, b->symbol);
        assert_int_equal(a->ordinal, b->ordinal);
        assert_int_equal(a->flags, b->flags);
        assert_int_equal(a->is_override, b->is_override);
        if (a->is_override)
            continue;
        assert_int_equal(a->type, b->type);
        assert_int_equal(a->segment, b->segment);
        assert_int_equal(a->offset, b->offset);
        assert_int_equal(a->addend, b->addend);
    }
}

static void encoded_lists_are_read_back(void **state)
{
#define AT(sym, ord, seg, off)                                                                     \
    .symbol = sym, .ordinal = ord, .segment = seg, .offset = off, .type = 1
    static const struct macho_bind list[] = {
        {AT("_a", 1, 1, 0)},
        {AT("_a", 2, 1, 8)}, /* only the library differs */
        {AT("_a", 2, 1, 16), .addend = -300},
        {AT("_b", 2, 1, 24), .addend = -300},
        {AT("_b", 2, 1, 0x100), .flags = 1},
        {AT("_c", 3, 0, 8)}, /* another segment, then backwards */
        {AT("_c", 3, 0, 0)},
        {AT("_d", -1, 1, 0x200)}, /* a run */
        {AT("_d", -1, 1, 0x208)},
        {AT("_d", -1, 1, 0x210)},
        {AT("_d", -1, 1, 0x218)},
        {AT("_d", -2, 1, 0x240)}, /* a run with gaps */
        {AT("_d", -2, 1, 0x258)},
        {AT("_d", -2, 1, 0x270)},
        {AT("_d", -2, 1, 0x268)},
        {AT("_d", 0, 1, 0x260)}, /* a run backwards */
        {AT("_d", 0, 1, 0x258)},
        {AT("_d", 0, 1, 0x250)},
        {AT("_d", 0, 1, 0x248)},
    };
#undef AT
    struct fixture *f = *state;

    assert_ok(exti__macho_bind_encode(list, ARRAY_SIZE(list), false, &f->out, &f->err), &f->err);
    assert_ok(read_binds(f, MACHO_BIND, f->out.p, f->out.n), &f->err);
    assert_same_list(f, list, ARRAY_SIZE(list));
}

static void libraries_are_encoded_at_every_width(void **state)
{
    static const struct {
        int32_t ordinal;
        const char *bytes;
        size_t n;
    } cases[] = {{1, "\x11", 1}, {15, "\x1f", 1}, {16, "\x20\x10", 2}, {200, "\x20\xc8\1", 3},
                 {0, "\x30", 1}, {-1, "\x3f", 1}, {-2, "\x3e", 1},     {-3, "\x3d", 1}};
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct macho_bind b = {.symbol = "_a", .ordinal = cases[i].ordinal, .type = 1};

        exti__buf_free(&f->out);
        assert_ok(exti__macho_bind_encode(&b, 1, false, &f->out, &f->err), &f->err);
        assert_memory_equal(f->out.p, cases[i].bytes, cases[i].n);
        assert_memory_equal(f->out.p + cases[i].n, "\x40_a\0\x51\x70\0\x90", 8);
    }
}

static int append(void *user, const struct macho_bind *b, struct exti_error *err)
{
    return exti__buf_append(user, b, sizeof *b, err);
}

static void linked_streams_survive_decoding_and_encoding(void **state)
{
    static const enum macho_piece_kind kinds[] = {MACHO_BIND, MACHO_LAZY_BIND, MACHO_WEAK_BIND};
    struct fixture *f = *state;

    macho_skip_without_tools();
    for (size_t a = 0; a < ARRAY_SIZE(macho_archs); a++)
        for (size_t i = 0; i < ARRAY_SIZE(macho_forms); i++) {
            struct macho_file m;

            if (macho_forms[i].chained)
                continue;
            assert_ok(exti__macho_open(macho_form_link(f->t, macho_archs[a], &macho_forms[i]), &m,
                                       &f->err),
                      &f->err);
            for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
                enum macho_piece_kind kind = kinds[k] == MACHO_LAZY_BIND ? MACHO_BIND : kinds[k];
                struct exti_span old = m.pieces[kind].s;
                const struct macho_bind *list;
                size_t n;

                f->text.n = f->out.n = 0;
                assert_ok(exti__macho_binds(&m, kinds[k], append, &f->text, &f->err), &f->err);
                list = (const void *)f->text.p;
                n = f->text.n / sizeof *list;
                assert_ok(
                    exti__macho_bind_encode(list, n, kind == MACHO_WEAK_BIND, &f->out, &f->err),
                    &f->err);
                m.pieces[kind].s = exti__span(f->out.p, f->out.n);
                f->n = 0;
                assert_ok(exti__macho_binds(&m, kind, keep_bind, f, &f->err), &f->err);
                m.pieces[kind].s = old;
                assert_same_list(f, list, n);
            }
            exti__macho_close(&m);
        }
}

static void out_of_memory_is_reported(void **state)
{
    const struct macho_bind b = {.symbol = "_a_name_that_is_longer_than_the_first_block_of_memory"
                                           "_which_is_of_sixty_four_bytes",
                                 .type = 1};
    struct fixture *f = *state;
    long n = 0;
    int rc;

    do {
        exti__buf_free(&f->out);
        exti__mem_fail_after(n);
        rc = exti__macho_bind_encode(&b, 1, false, &f->out, &f->err);
        exti__mem_fail_after(-1);
        if (rc)
            assert_exti(rc, EXTI_E_NOMEM, &f->err, EXTI_NO_OFFSET);
    } while (rc && ++n < 10);
    assert_int_equal(n, 2);
    /* A buffer that is too small is reported wherever it runs out. */
    for (size_t max = 0;; max++) {
        exti__buf_free(&f->out);
        f->out = exti__buf(max);
        rc = exti__macho_bind_encode(&b, 1, false, &f->out, &f->err);
        if (!rc)
            break;
        assert_exti(rc, EXTI_E_NOSPACE, &f->err, EXTI_NO_OFFSET);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        bind_test(encoded_lists_are_read_back),
        bind_test(libraries_are_encoded_at_every_width),
        bind_test(linked_streams_survive_decoding_and_encoding),
        bind_test(out_of_memory_is_reported),
    };

    return cmocka_run_group_tests_name("macho/macho_bind_encode", tests, NULL, NULL);
}
