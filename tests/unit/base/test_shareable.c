#include "tests/support/exti_test.h"

#include <string.h>

#include "base/shareable.h"

/* Three segments; the second has no holes, and only the third has a place behind it. */
static const struct exti_shareable shareable = {
    .segments = {{100, 50}, {200, 50}, {300, 50}},
    .count = 3,
    .own = {50, 50, 80},
    .holes = {{{110, 10}, {125, 5}, {300, 50}}, 3},
};

static const uint8_t input[512] = {1};

/* Plans the bytes [at, at + n) to be other than they are. */
static void plan_edit(struct exti_plan *plan, uint64_t at, size_t n)
{
    uint8_t bytes[512];

    memset(bytes, 7, sizeof bytes);
    exti__plan_init(plan, 1 << 16);
    assert_int_equal(exti__plan_patch(plan, at, bytes, n, "test", NULL), 0);
    assert_int_equal(exti__plan_seal(plan, exti__span(input, sizeof input), NULL), 0);
}

/* Wants the holes, by the bits of their numbers, that an edit leaves. */
static void want_left(uint64_t at, size_t n, unsigned holes)
{
    struct exti_unread left_out, unloaded;
    struct exti_plan plan;
    size_t count = 0;

    plan_edit(&plan, at, n);
    exti__shareable_left(&shareable, &plan, &left_out, &unloaded);
    exti__plan_free(&plan);
    for (size_t i = 0; i < shareable.holes.count; i++) {
        if (!(holes & 1u << i))
            continue;
        assert_true(count < left_out.count);
        assert_int_equal(left_out.part[count].at, shareable.holes.part[i].at);
        assert_int_equal(left_out.part[count++].n, shareable.holes.part[i].n);
    }
    assert_int_equal(left_out.count, count);
}

static void what_an_edit_touches_is_not_left_out(void **state)
{
    (void)state;
    want_left(0, 1, 7);
    want_left(99, 1, 7);
    want_left(99, 2, 4);
    want_left(149, 1, 4);
    want_left(150, 50, 7);
    want_left(220, 1, 7);
    want_left(120, 200, 0);
}

/* A segment that grows into the rest of its last page is another one. */
static void an_edit_behind_a_segment_may_be_its_own(void **state)
{
    (void)state;
    want_left(350, 1, 3);
    want_left(379, 1, 3);
    want_left(380, 1, 7);
}

static void a_new_end_is_an_edit(void **state)
{
    struct exti_unread left_out, unloaded;
    struct exti_plan plan;

    (void)state;
    exti__plan_init(&plan, 1 << 16);
    plan.tail_offset = 340;
    assert_int_equal(exti__buf_append(&plan.tail, input, 4, NULL), 0);
    exti__shareable_left(&shareable, &plan, &left_out, &unloaded);
    exti__plan_free(&plan);
    assert_int_equal(left_out.count, 2);
}

/* What the cuts of a plan leave out comes in its place, unless there is nothing else to take from
 * the input. */
static void what_cuts_leave_out_comes_in_its_place(void **state)
{
    static const size_t at[] = {110, 125, 160, 300, 350};
    struct exti_shareable none = shareable;
    struct exti_unread left_out, unloaded;
    struct exti_plan plan;

    (void)state;
    plan_edit(&plan, 0, 1);
    plan.cuts[plan.cut_count++] = (struct exti_cut){.left = {350, 5}};
    plan.cuts[plan.cut_count++] = (struct exti_cut){.left = {160, 10}, .loaded = true};
    plan.cuts[plan.cut_count++] = (struct exti_cut){.n = 4};
    exti__shareable_left(&shareable, &plan, &left_out, &unloaded);
    assert_int_equal(left_out.count, 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(left_out.part[i].at, at[i]);
    assert_int_equal(unloaded.count, 1);
    assert_int_equal(unloaded.part[0].at, 350);
    exti__parts_drop(&left_out, &unloaded);
    assert_int_equal(left_out.count, 4);
    assert_int_equal(left_out.part[3].at, 300);
    none.count = 0;
    exti__shareable_left(&none, &plan, &left_out, &unloaded);
    assert_int_equal(left_out.count + unloaded.count, 0);
    exti__plan_free(&plan);
}

static void parts_tell_where_they_change(void **state)
{
    static const struct exti_unread parts = {{{10, 5}, {20, 5}}, 2};
    static const struct {
        size_t at, end, changes;
        bool has;
    } cases[] = {{0, 100, 10, false},  {0, 5, 5, false},     {10, 100, 15, true},
                 {12, 13, 13, true},   {15, 100, 20, false}, {24, 100, 25, true},
                 {25, 100, 100, false}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        size_t end = cases[i].end;

        assert_int_equal(exti__parts_have(&parts, cases[i].at, &end), cases[i].has);
        assert_int_equal(end, cases[i].changes);
    }
}

static void parts_have_a_size_and_what_is_between(void **state)
{
    static const struct exti_unread parts = {{{10, 5}, {20, 5}}, 2}, none = {.count = 0};
    static const struct exti_range between[] = {{0, 10}, {15, 5}, {25, 75}};

    (void)state;
    assert_int_equal(exti__parts_size(&parts), 10);
    assert_int_equal(exti__parts_size(&none), 0);
    for (size_t i = 0; i < ARRAY_SIZE(between); i++) {
        assert_int_equal(exti__parts_between(&parts, i, 100).at, between[i].at);
        assert_int_equal(exti__parts_between(&parts, i, 100).n, between[i].n);
    }
    assert_int_equal(exti__parts_between(&none, 0, 7).n, 7);
}

static void same_parts_are_the_same(void **state)
{
    const struct exti_unread a = shareable.holes;
    struct exti_unread b = a;

    (void)state;
    assert_true(exti__parts_same(&a, &b));
    b.part[2].n++;
    assert_false(exti__parts_same(&a, &b));
    b = a;
    b.part[0].at++;
    assert_false(exti__parts_same(&a, &b));
    b = a;
    b.count--;
    assert_false(exti__parts_same(&a, &b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_an_edit_touches_is_not_left_out),
        cmocka_unit_test(an_edit_behind_a_segment_may_be_its_own),
        cmocka_unit_test(a_new_end_is_an_edit),
        cmocka_unit_test(what_cuts_leave_out_comes_in_its_place),
        cmocka_unit_test(parts_tell_where_they_change),
        cmocka_unit_test(parts_have_a_size_and_what_is_between),
        cmocka_unit_test(same_parts_are_the_same),
    };

    return cmocka_run_group_tests_name("base/shareable", tests, NULL, NULL);
}
