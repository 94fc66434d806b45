#include "tests/support/exti_test.h"

#include <string.h>

#include "base/mem.h"
#include "macho/macho_format.h"
#include "macho/read/macho_withheld.h"
#include "tests/unit/macho/macho_runs.h"

static const struct exti_rewrite_opts withhold = {.size = sizeof withhold,
                                                  .flags = EXTI_RW_WITHHOLD};

static int plan_of(struct test *t, const struct macho_toy *toy, struct exti_plan *plan)
{
    const struct exti_request req = {.opts = &withhold};

    t->err = (struct exti_error){0};
    exti__plan_init(plan, toy->n + ((size_t)1 << 20));
    return exti__macho_format.plan(exti__span(toy->b, toy->n), &req, plan, &t->err);
}

static void rewrite_toy(struct test *t, const struct macho_toy *from, struct macho_toy *to)
{
    struct exti_plan plan;

    assert_ok(plan_of(t, from, &plan), &t->err);
    *to = *from;
    exti__plan_apply(&plan, to->b, to->n);
    assert_int_equal(exti__plan_size(&plan, to->n), from->n);
    exti__plan_free(&plan);
}

static bool is_among(size_t at, const size_t *places, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (at >= places[i] && at < places[i] + 4)
            return true;
    return false;
}

static void only_types_change(void **state)
{
    struct test *t = *state;
    struct macho_toy *was = test_alloc(t, sizeof *was), *now = test_alloc(t, sizeof *now);

    for (unsigned chained = 0; chained < 2; chained++) {
        size_t places[5];

        runs_make(was, (struct macho_toy_opts){.naked = true, .chained = chained});
        mtoy_put(was, runs_flags(was, 0), 4, 0x10000000 | S_MOD_INIT_FUNC_POINTERS);
        rewrite_toy(t, was, now);
        for (size_t i = 0; i < 3; i++)
            places[i] = runs_flags(was, i);
        places[3] = runs_routines(was);
        places[4] = mtoy_find(was, LC_SEGMENT_64, 2) + 32; /* __LINKEDIT's rounded vmsize */
        for (size_t i = 0; i < was->n; i++)
            if (was->b[i] != now->b[i] && !is_among(i, places, ARRAY_SIZE(places)))
                fail_msg("byte 0x%zx changes", i);
        assert_int_equal(mtoy_get(now, places[0], 4), 0x10890000);
        assert_int_equal(mtoy_get(now, places[1], 4), 0x00960000);
        assert_int_equal(mtoy_get(now, places[2], 4), 0x008a0000);
        assert_int_equal(mtoy_get(now, places[3], 4), EXTI_LC_ROUTINES_64);
    }
}

static void a_second_time_changes_nothing(void **state)
{
    struct test *t = *state;
    struct macho_toy *was = test_alloc(t, sizeof *was), *now = test_alloc(t, sizeof *now);
    struct exti_plan plan;

    runs_make(was, (struct macho_toy_opts){.naked = true});
    rewrite_toy(t, was, now);
    assert_ok(plan_of(t, now, &plan), &t->err);
    assert_int_equal(plan.count, 0);
    assert_int_equal(plan.tail.n, 0);
    exti__plan_free(&plan);
}

static void a_file_without_constructors_stays(void **state)
{
    struct test *t = *state;
    struct macho_toy *toy = test_alloc(t, sizeof *toy);
    struct exti_plan plan;

    macho_toy_make(toy, (struct macho_toy_opts){.naked = true});
    assert_ok(plan_of(t, toy, &plan), &t->err);
    assert_int_equal(plan.count, 0);
    exti__plan_free(&plan);
}

static void attributes_in_use_are_refused(void **state)
{
    struct test *t = *state;
    struct macho_toy *toy = test_alloc(t, sizeof *toy);
    struct exti_plan plan;

    runs_make(toy, (struct macho_toy_opts){.naked = true});
    mtoy_put(toy, runs_flags(toy, 1), 4, 0x00010000 | S_INIT_FUNC_OFFSETS);
    assert_exti(plan_of(t, toy, &plan), EXTI_E_UNSUPPORTED, &t->err, runs_flags(toy, 1));
    assert_says(&t->err, "section __DATA,__la_symbol_ptr: has unknown attributes, 0x10000");
    exti__plan_free(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(only_types_change),
        exti_test(a_second_time_changes_nothing),
        exti_test(a_file_without_constructors_stays),
        exti_test(attributes_in_use_are_refused),
    };

    return cmocka_run_group_tests_name("macho/macho_withhold", tests, NULL, NULL);
}
