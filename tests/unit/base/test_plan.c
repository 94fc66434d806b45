#include "tests/support/exti_test.h"

#include <string.h>

#include "base/mem.h"
#include "base/plan.h"

static const char input[] = "0123456789abcdef"; /* 16 bytes count */
#define INPUT_SIZE 16

static int setup(void **state)
{
    static struct exti_plan plan;

    exti__plan_init(&plan, 1 << 16);
    *state = &plan;
    return 0;
}

static int teardown(void **state)
{
    exti__mem_fail_after(-1);
    exti__plan_free(*state);
    return 0;
}

#define plan_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static struct exti_span before(void)
{
    return exti__span(input, INPUT_SIZE);
}

static void add_text(struct exti_plan *plan, uint64_t offset, const char *text)
{
    struct exti_error err = {0};

    assert_ok(exti__plan_patch(plan, offset, text, strlen(text), "field", &err), &err);
}

static void seal(struct exti_plan *plan)
{
    struct exti_error err = {0};

    assert_ok(exti__plan_seal(plan, before(), &err), &err);
}

static void set_tail(struct exti_plan *plan, uint64_t offset, const char *text)
{
    struct exti_error err = {0};

    plan->tail_offset = offset;
    assert_ok(exti__buf_append(&plan->tail, text, strlen(text), &err), &err);
}

static void empty_plan_changes_nothing(void **state)
{
    struct exti_plan *plan = *state;
    uint8_t image[INPUT_SIZE];

    seal(plan);
    memcpy(image, input, sizeof image);
    assert_int_equal(exti__plan_size(plan, INPUT_SIZE), INPUT_SIZE);
    exti__plan_apply(plan, image, INPUT_SIZE);
    assert_memory_equal(image, input, INPUT_SIZE);
    assert_int_equal(exti__plan_stray(plan, before(), exti__span(image, sizeof image), NULL),
                     EXTI_NO_OFFSET);
}

static void patches_come_in_any_order(void **state)
{
    struct exti_plan *plan = *state;
    uint8_t image[INPUT_SIZE];

    add_text(plan, 14, "EF");
    add_text(plan, 0, "O");
    add_text(plan, 7, "VV");
    add_text(plan, 9, "W"); /* adjacent to the one before */
    seal(plan);
    assert_int_equal(plan->count, 4);
    for (size_t i = 1; i < plan->count; i++)
        assert_true(plan->patches[i - 1].offset < plan->patches[i].offset);
    memcpy(image, input, sizeof image);
    exti__plan_apply(plan, image, INPUT_SIZE);
    assert_memory_equal(image, "O123456VVWabcdEF", INPUT_SIZE);
    assert_int_equal(exti__plan_stray(plan, before(), exti__span(image, sizeof image), NULL),
                     EXTI_NO_OFFSET);
}

static void patch_that_changes_nothing_is_dropped(void **state)
{
    struct exti_plan *plan = *state;

    add_text(plan, 3, "345");
    add_text(plan, 10, "aX");
    add_text(plan, 0, "0");
    seal(plan);
    assert_int_equal(plan->count, 1);
    assert_int_equal(plan->patches[0].offset, 10);
}

static void seal_refuses_what_lies_outside(void **state)
{
    static const struct {
        uint64_t offset;
        size_t n;
    } cases[] = {{15, 2}, {16, 1}, {17, 1}, {UINT64_MAX, 1}, {UINT64_MAX - 1, 4}, {0, 17}};
    struct exti_plan *plan = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct exti_error err = {0};

        exti__plan_free(plan);
        exti__plan_init(plan, 100);
        assert_ok(exti__plan_patch(plan, cases[i].offset, "XXXXXXXXXXXXXXXXX", cases[i].n,
                                   "DT_NEEDED", &err),
                  &err);
        assert_exti(exti__plan_seal(plan, before(), &err), EXTI_E_FORMAT, &err, cases[i].offset);
        assert_says(&err, "DT_NEEDED");
    }
}

static void seal_refuses_overlap(void **state)
{
    static const struct {
        uint64_t first, second;
        const char *a, *b;
    } cases[] = {
        {4, 5, "AB", "C"},  /* inside */
        {4, 5, "AB", "CD"}, /* across the end */
        {5, 4, "CD", "AB"}, /* the other order */
        {4, 4, "A", "B"},   /* the same place */
        {4, 5, "45", "X"},  /* even when one of them changes nothing */
    };
    struct exti_plan *plan = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct exti_error err = {0};
        uint64_t later = cases[i].first > cases[i].second ? cases[i].first : cases[i].second;

        exti__plan_free(plan);
        exti__plan_init(plan, 100);
        add_text(plan, cases[i].first, cases[i].a);
        add_text(plan, cases[i].second, cases[i].b);
        assert_exti(exti__plan_seal(plan, before(), &err), EXTI_E_FORMAT, &err, later);
        assert_says(&err, "overlaps");
    }
}

static void tail_follows_a_gap_of_zeros(void **state)
{
    struct exti_plan *plan = *state;
    uint8_t image[64];

    add_text(plan, 1, "X");
    set_tail(plan, 20, "tail");
    seal(plan);
    assert_int_equal(exti__plan_size(plan, INPUT_SIZE), 24);
    memset(image, 0xee, sizeof image);
    memcpy(image, input, INPUT_SIZE);
    exti__plan_apply(plan, image, INPUT_SIZE);
    assert_memory_equal(image, "0X23456789abcdef\0\0\0\0tail\xee", 25);
    assert_int_equal(exti__plan_stray(plan, before(), exti__span(image, 24), NULL), EXTI_NO_OFFSET);
}

static void tail_may_follow_at_once(void **state)
{
    struct exti_plan *plan = *state;
    uint8_t image[18];

    set_tail(plan, INPUT_SIZE, "Z");
    seal(plan);
    assert_int_equal(exti__plan_size(plan, INPUT_SIZE), 17);
    memset(image, 0xee, sizeof image);
    memcpy(image, input, INPUT_SIZE);
    exti__plan_apply(plan, image, INPUT_SIZE);
    assert_memory_equal(image, "0123456789abcdefZ\xee", 18);
}

static void every_stray_byte_is_found(void **state)
{
    struct exti_plan *plan = *state;
    uint8_t good[20], image[20];

    add_text(plan, 0, "X");
    add_text(plan, 5, "YY");
    add_text(plan, 15, "Z");
    set_tail(plan, 18, "tt");
    seal(plan);
    memcpy(good, input, INPUT_SIZE);
    exti__plan_apply(plan, good, INPUT_SIZE);
    for (size_t i = 0; i < INPUT_SIZE; i++) {
        bool planned = i == 0 || i == 5 || i == 6 || i == 15;

        memcpy(image, good, sizeof image);
        image[i] ^= 0x80;
        assert_int_equal(exti__plan_stray(plan, before(), exti__span(image, sizeof image), NULL),
                         planned ? EXTI_NO_OFFSET : i);
    }
}

static void tail_replaces_the_rest(void **state)
{
    struct exti_plan *plan = *state;
    struct exti_error err = {0};
    uint8_t image[INPUT_SIZE];

    add_text(plan, 2, "XX");
    set_tail(plan, 10, "tail");
    seal(plan);
    assert_int_equal(exti__plan_size(plan, INPUT_SIZE), 14);
    memcpy(image, input, sizeof image);
    exti__plan_apply(plan, image, INPUT_SIZE);
    assert_memory_equal(image, "01XX456789tail", 14);
    assert_int_equal(exti__plan_stray(plan, before(), exti__span(image, 14), NULL), EXTI_NO_OFFSET);
    image[9] = '!';
    assert_int_equal(exti__plan_stray(plan, before(), exti__span(image, 14), NULL), 9);
    add_text(plan, 9, "YY"); /* reaches into the tail */
    assert_exti(exti__plan_seal(plan, before(), &err), EXTI_E_FORMAT, &err, 9);
}

static void first_stray_byte_is_named(void **state)
{
    struct exti_plan *plan = *state;
    uint8_t image[INPUT_SIZE];

    add_text(plan, 2, "X");
    seal(plan);
    memcpy(image, input, sizeof image);
    exti__plan_apply(plan, image, INPUT_SIZE);
    image[9] = image[12] = 0;
    assert_int_equal(exti__plan_stray(plan, before(), exti__span(image, sizeof image), NULL), 9);
}

static void stray_refuses_another_size(void **state)
{
    struct exti_plan *plan = *state;
    uint8_t image[32] = {0};

    seal(plan);
    memcpy(image, input, INPUT_SIZE);
    assert_int_not_equal(exti__plan_stray(plan, before(), exti__span(image, 17), NULL),
                         EXTI_NO_OFFSET);
    assert_int_not_equal(exti__plan_stray(plan, before(), exti__span(image, 15), NULL),
                         EXTI_NO_OFFSET);
}

static void many_patches_fit(void **state)
{
    static uint8_t big[4096], image[4096];
    struct exti_plan *plan = *state;
    struct exti_error err = {0};

    memset(big, 0x11, sizeof big);
    for (size_t i = sizeof big; i > 0; i -= 2)
        assert_ok(exti__plan_patch(plan, i - 2, "z", 1, "field", &err), &err);
    assert_ok(exti__plan_seal(plan, exti__span(big, sizeof big), &err), &err);
    assert_int_equal(plan->count, sizeof big / 2);
    memcpy(image, big, sizeof image);
    exti__plan_apply(plan, image, sizeof image);
    for (size_t i = 0; i < sizeof image; i++)
        assert_int_equal(image[i], i % 2 ? 0x11 : 'z');
    assert_int_equal(
        exti__plan_stray(plan, exti__span(big, sizeof big), exti__span(image, sizeof image), NULL),
        EXTI_NO_OFFSET);
}

static void limit_holds_for_the_new_bytes(void **state)
{
    struct exti_plan *plan = *state;
    struct exti_error err = {0};

    exti__plan_free(plan);
    exti__plan_init(plan, 4);
    add_text(plan, 0, "abc");
    assert_exti(exti__plan_patch(plan, 8, "YY", 2, "field", &err), EXTI_E_NOSPACE, &err,
                EXTI_NO_OFFSET);
    assert_int_equal(plan->count, 1);
    assert_exti(exti__buf_append(&plan->tail, "12345", 5, &err), EXTI_E_NOSPACE, &err,
                EXTI_NO_OFFSET);
}

/* Enough patches to make both arrays grow more than once. */
static int make_many(struct exti_plan *plan, struct exti_error *err)
{
    int rc = 0;

    for (uint64_t i = 0; i < 100 && !rc; i++)
        rc = exti__plan_patch(plan, i * 8, "12345678", 8, "field", err);
    return rc;
}

static void every_allocation_may_fail(void **state)
{
    struct exti_plan *plan = *state;
    struct exti_error err = {0};
    long n;
    int rc;

    for (n = 0;; n++) {
        exti__plan_free(plan);
        exti__plan_init(plan, 1 << 16);
        exti__mem_fail_after(n);
        rc = make_many(plan, &err);
        exti__mem_fail_after(-1);
        if (!rc)
            break;
        assert_exti(rc, EXTI_E_NOMEM, &err, EXTI_NO_OFFSET);
        /* What was planned before the failure is still valid. */
        for (size_t i = 0; i < plan->count; i++)
            assert_memory_equal(plan->data.p + plan->patches[i].data, "12345678", 8);
    }
    assert_true(n >= 4);
    assert_int_equal(plan->count, 100);
}

static void assert_part(const struct exti_plan *plan, size_t i, uint64_t from, uint64_t to)
{
    uint64_t f, t;

    assert_true(exti__plan_part(plan, i, 3, 10, &f, &t));
    assert_int_equal(f, from);
    assert_int_equal(t, to);
}

static void parts_are_cut_to_the_range(void **state)
{
    struct exti_plan *plan = *state;
    uint64_t f, t;

    add_text(plan, 0, "XX");
    add_text(plan, 2, "YY");
    add_text(plan, 5, "ZZ");
    seal(plan);
    assert_part(plan, 0, 3, 3);
    assert_part(plan, 1, 3, 4);
    assert_part(plan, 2, 5, 7);
    assert_false(exti__plan_part(plan, 3, 3, 10, &f, &t));
    set_tail(plan, 8, "T");
    assert_part(plan, 3, 8, 10);
    assert_false(exti__plan_part(plan, 4, 3, 10, &f, &t));
    plan->tail_offset = 12;
    assert_part(plan, 3, 10, 10);
}

static void freeing_twice_is_harmless(void **state)
{
    struct exti_plan *plan = *state;

    add_text(plan, 0, "X");
    exti__plan_free(plan);
    exti__plan_free(plan);
    assert_null(plan->patches);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        plan_test(empty_plan_changes_nothing),
        plan_test(patches_come_in_any_order),
        plan_test(patch_that_changes_nothing_is_dropped),
        plan_test(seal_refuses_what_lies_outside),
        plan_test(seal_refuses_overlap),
        plan_test(tail_follows_a_gap_of_zeros),
        plan_test(tail_may_follow_at_once),
        plan_test(every_stray_byte_is_found),
        plan_test(tail_replaces_the_rest),
        plan_test(first_stray_byte_is_named),
        plan_test(stray_refuses_another_size),
        plan_test(many_patches_fit),
        plan_test(limit_holds_for_the_new_bytes),
        plan_test(every_allocation_may_fail),
        plan_test(parts_are_cut_to_the_range),
        plan_test(freeing_twice_is_harmless),
    };

    return cmocka_run_group_tests_name("base/plan", tests, NULL, NULL);
}
