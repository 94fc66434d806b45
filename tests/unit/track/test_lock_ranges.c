/* The ranges, held against an array with the kind of each byte. */
#include "tests/support/exti_test.h"

#include <string.h>

#include "base/mem.h"
#include "loader/track/lock_ranges.h"

#define BYTES 24

static void put(struct exti_lock_ranges *r, int64_t start, int64_t end, enum exti_lock_kind kind)
{
    const struct exti_lock_range range = {start, end, kind};

    assert_true(exti__lock_ranges_room(r));
    exti__lock_ranges_set(r, &range);
}

static enum exti_lock_kind kind_at(const struct exti_lock_ranges *r, int64_t at)
{
    for (size_t i = 0; i < r->count; i++)
        if (r->list[i].start <= at && at <= r->list[i].end)
            return r->list[i].kind;
    return EXTI_LOCK_NONE;
}

/* Ascending, apart, and none touches another of its kind. */
static void assert_tidy(const struct exti_lock_ranges *r)
{
    assert_true(r->count <= r->cap);
    for (size_t i = 0; i < r->count; i++) {
        assert_true(r->list[i].start <= r->list[i].end);
        assert_int_not_equal(r->list[i].kind, EXTI_LOCK_NONE);
        if (!i)
            continue;
        assert_true(r->list[i - 1].end < r->list[i].start);
        assert_true(r->list[i - 1].end + 1 < r->list[i].start ||
                    r->list[i - 1].kind != r->list[i].kind);
    }
}

static void every_byte_has_the_kind_that_was_set_last(void **state)
{
    enum exti_lock_kind bytes[BYTES] = {EXTI_LOCK_NONE};
    struct exti_lock_ranges r = {0};
    unsigned seed = 7;

    (void)state;
    for (int turn = 0; turn < 20000; turn++) {
        enum exti_lock_kind kind;
        int start, end;

        seed = seed * 1103515245 + 12345;
        start = (int)(seed >> 8) % BYTES;
        end = start + (int)(seed >> 16) % (BYTES - start);
        kind = (enum exti_lock_kind)((seed >> 24) % 3);
        put(&r, start, end, kind);
        for (int i = start; i <= end; i++)
            bytes[i] = kind;
        for (int i = 0; i < BYTES; i++)
            assert_int_equal(kind_at(&r, i), bytes[i]);
        assert_tidy(&r);
    }
    put(&r, 0, BYTES, EXTI_LOCK_NONE);
    assert_int_equal(r.count, 0);
    exti__free(r.list);
}

static void a_range_may_reach_the_end_of_any_file(void **state)
{
    struct exti_lock_ranges r = {0};

    (void)state;
    put(&r, 0, INT64_MAX, EXTI_LOCK_WRITE);
    put(&r, 10, 19, EXTI_LOCK_NONE);
    assert_int_equal(r.count, 2);
    assert_int_equal(kind_at(&r, INT64_MAX), EXTI_LOCK_WRITE);
    put(&r, 20, INT64_MAX, EXTI_LOCK_READ);
    assert_int_equal(r.count, 2);
    assert_int_equal(r.list[1].start, 20);
    put(&r, 0, INT64_MAX, EXTI_LOCK_NONE);
    assert_int_equal(r.count, 0);
    exti__free(r.list);
}

static void only_two_readers_do_not_conflict(void **state)
{
    const struct exti_lock_range read = {5, 14, EXTI_LOCK_READ}, write = {5, 14, EXTI_LOCK_WRITE},
                                 before = {0, 9, EXTI_LOCK_WRITE},
                                 behind = {30, 40, EXTI_LOCK_WRITE};
    struct exti_lock_ranges r = {0};

    (void)state;
    put(&r, 10, 19, EXTI_LOCK_READ);
    put(&r, 20, 29, EXTI_LOCK_WRITE);
    assert_null(exti__lock_ranges_conflict(&r, &read));
    assert_ptr_equal(exti__lock_ranges_conflict(&r, &write), &r.list[0]);
    assert_null(exti__lock_ranges_conflict(&r, &before));
    assert_null(exti__lock_ranges_conflict(&r, &behind));
    put(&r, 0, 0, EXTI_LOCK_READ);
    assert_ptr_equal(exti__lock_ranges_conflict(&r, &before), &r.list[0]);
    exti__free(r.list);
}

static void without_memory_nothing_changes(void **state)
{
    struct exti_lock_ranges r = {0};

    (void)state;
    exti__mem_fail_after(0);
    assert_false(exti__lock_ranges_room(&r));
    exti__mem_fail_after(-1);
    for (int i = 0; i < 14; i++)
        put(&r, 10 * i, 10 * i + 1, EXTI_LOCK_READ);
    assert_true(exti__lock_ranges_room(&r));
    put(&r, 1000, 1001, EXTI_LOCK_READ);
    exti__mem_fail_after(0);
    assert_false(exti__lock_ranges_room(&r));
    exti__mem_fail_after(-1);
    assert_int_equal(r.count, 15);
    exti__free(r.list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_has_the_kind_that_was_set_last),
        cmocka_unit_test(a_range_may_reach_the_end_of_any_file),
        cmocka_unit_test(only_two_readers_do_not_conflict),
        cmocka_unit_test(without_memory_nothing_changes),
    };

    return cmocka_run_group_tests_name("track/lock_ranges", tests, NULL, NULL);
}
