#include "tests/support/exti_test.h"

#include <string.h>

#include "macho/read/macho_functions.h"
#include "macho/read/macho_withheld.h"
#include "tests/unit/macho/macho_runs.h"

struct seen {
    struct exti_macho_function f[16];
    size_t n, most;
};

static int note_function(void *user, const struct exti_macho_function *f)
{
    struct seen *s = user;

    assert_true(s->n < ARRAY_SIZE(s->f));
    s->f[s->n++] = *f;
    return s->n == s->most;
}

/* The toy's file is what dyld would map: its offsets are those in memory. */
static void walk(const struct macho_toy *t, struct seen *s)
{
    s->n = 0;
    exti__macho_functions(exti__span(t->b, 2 * t->page), note_function, s);
}

static void put_functions(struct macho_toy *t)
{
    for (size_t i = 0; i < 2; i++) {
        mtoy_put(t, t->data + 8 * i, 8, 0x1001 + i);
        mtoy_put(t, t->data + 16 + 4 * i, 4, 0x2001 + i);
        mtoy_put(t, t->data + 24 + 8 * i, 8, 0x3001 + i);
    }
}

static void assert_all(const struct macho_toy *t, const struct seen *s, bool withheld)
{
    const uintptr_t base = (uintptr_t)t->b;
    const uintptr_t wanted[] = {base + t->text, 0x1001, 0x1002, base + 0x2001,
                                base + 0x2002,  0x3001, 0x3002};

    assert_int_equal(s->n, ARRAY_SIZE(wanted));
    for (size_t i = 0; i < s->n; i++) {
        assert_true(s->f[i].address == wanted[i]);
        assert_int_equal(s->f[i].is_terminator, i >= 5);
        assert_int_equal(s->f[i].is_withheld, withheld);
    }
}

static void functions_come_in_dylds_order(void **state)
{
    struct test *t = *state;
    struct macho_toy *toy = test_alloc(t, sizeof *toy);
    struct seen s = {.n = 0};

    runs_make(toy, (struct macho_toy_opts){0});
    put_functions(toy);
    walk(toy, &s);
    assert_all(toy, &s, false);
    for (size_t i = 0; i < 3; i++)
        mtoy_put(toy, runs_flags(toy, i), 4,
                 exti__macho_withheld_flags((uint32_t)mtoy_get(toy, runs_flags(toy, i), 4)));
    mtoy_put(toy, runs_routines(toy), 4, EXTI_LC_ROUTINES_64);
    walk(toy, &s);
    assert_all(toy, &s, true);
}

static void a_walk_ends_when_asked_to(void **state)
{
    struct test *t = *state;
    struct macho_toy *toy = test_alloc(t, sizeof *toy);

    runs_make(toy, (struct macho_toy_opts){0});
    for (size_t most = 1; most < 7; most++) {
        struct seen s = {.most = most};

        walk(toy, &s);
        assert_int_equal(s.n, most);
    }
}

static void other_sections_hold_no_functions(void **state)
{
    /* S_REGULAR with spare bits that name no type, or not the mark, and other types with both. */
    static const uint32_t others[] = {0,          0x00090000, 0x00800000, 0x00870000,
                                      0x00890006, 0x01090000, 0x00960015};
    struct test *t = *state;
    struct macho_toy *toy = test_alloc(t, sizeof *toy);
    struct seen s = {.n = 0};

    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        macho_toy_make(toy, (struct macho_toy_opts){0});
        mtoy_put(toy, runs_flags(toy, 2), 4, others[i]);
        walk(toy, &s);
        assert_int_equal(s.n, 0);
        assert_false(exti__macho_section_is_withheld(others[i]));
    }
}

/* Attributes stay, and a withheld section is not withheld twice. */
static void flags_keep_the_type(void **state)
{
    static const uint32_t types[] = {S_MOD_INIT_FUNC_POINTERS, S_MOD_TERM_FUNC_POINTERS,
                                     S_INIT_FUNC_OFFSETS};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        const uint32_t was = 0x10000000 | types[i], now = exti__macho_withheld_flags(was);

        assert_int_equal(now, 0x10800000 | types[i] << 16);
        assert_true(exti__macho_section_is_withheld(now));
        assert_false(exti__macho_section_is_withheld(was));
        assert_int_equal(exti__macho_section_type(now), types[i]);
        assert_int_equal(exti__macho_section_type(was), types[i]);
        assert_int_equal(exti__macho_withheld_flags(now), now);
    }
    assert_int_equal(exti__macho_withheld_flags(S_THREAD_LOCAL_VARIABLES),
                     S_THREAD_LOCAL_VARIABLES);
}

/* Sizes and offsets that lead out of the image. */
static void a_malformed_image_is_not_left(void **state)
{
    struct test *t = *state;
    struct macho_toy *toy = test_alloc(t, sizeof *toy);
    struct seen s = {.n = 0};

    runs_make(toy, (struct macho_toy_opts){0});
    mtoy_put(toy, runs_flags(toy, 0) - 24, 8, UINT64_MAX); /* the size */
    mtoy_put(toy, runs_flags(toy, 1) - 32, 8, 8);          /* the address */
    walk(toy, &s);
    assert_int_equal(s.n, 3);
    mtoy_put(toy, mtoy_find(toy, LC_SEGMENT_64, 1) + 64, 4, UINT32_MAX); /* nsects */
    walk(toy, &s);
    assert_int_equal(s.n, 3);
    mtoy_put(toy, MACH_HEADER_64_SIZE + 4, 4, 0); /* a command's size */
    walk(toy, &s);
    assert_int_equal(s.n, 0);
    mtoy_put(toy, MACH_HEADER_64_SIZE + 4, 4, UINT32_MAX);
    walk(toy, &s);
    assert_int_equal(s.n, 0);
    exti__macho_functions(exti__span(toy->b, 20), note_function, &s);
    assert_int_equal(s.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(functions_come_in_dylds_order),    exti_test(a_walk_ends_when_asked_to),
        exti_test(other_sections_hold_no_functions), exti_test(flags_keep_the_type),
        exti_test(a_malformed_image_is_not_left),
    };

    return cmocka_run_group_tests_name("macho/macho_functions", tests, NULL, NULL);
}
