/* Records of links by host object and by native. */
#include "tests/support/exti_test.h"

#include <stdlib.h>

#include "base/mem.h"
#include "link/records.h"

static void *native_at(size_t i)
{
    return (void *)(0x10000 + i * 48);
}

static exti_host_word host_at(size_t i)
{
    return 0x7f0000000000u + i * 64;
}

/* NO_LINK: without memory. */
static uint32_t add(struct link_table *t, size_t i, uint32_t state)
{
    struct link_place by_native, by_host;

    if (!exti__link_make_room(t, state))
        return NO_LINK;
    by_native = exti__link_place_native(t, native_at(i));
    by_host = exti__link_place_host(t, host_at(i));
    assert_int_equal(by_native.link, NO_LINK);
    assert_int_equal(by_host.link, NO_LINK);
    return exti__link_add(t, host_at(i), native_at(i), state, by_native.at, by_host.at);
}

static void assert_all_found(const struct link_table *t, const bool *there, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const uint32_t by_host = exti__link_find_host(t, host_at(i)),
                       by_native = exti__link_find_native(t, native_at(i));

        assert_int_equal(by_host != NO_LINK, there[i]);
        assert_int_equal(by_native, by_host);
        if (there[i])
            assert_ptr_equal(t->links[by_native].native, native_at(i));
    }
}

#define MANY 3000

static void links_come_and_go(void **state)
{
    static bool there[MANY];
    struct link_table t;
    unsigned seed = 1;

    (void)state;
    exti__link_table_begin(&t);
    assert_int_equal(exti__link_find_host(&t, host_at(0)), NO_LINK);
    assert_int_equal(exti__link_find_native(&t, native_at(0)), NO_LINK);
    for (int n = 0; n < 200000; n++) {
        const size_t i = (seed = seed * 1103515245 + 12345) / 65536 % MANY; /* POSIX rand */

        if (there[i]) {
            const uint32_t at = exti__link_find_native(&t, native_at(i));

            exti__link_unlist(&t, at);
            exti__link_give_back(&t, at);
        } else {
            assert_int_not_equal(add(&t, i, LINK_HOST_FIRST), NO_LINK);
        }
        there[i] = !there[i];
        if (n % 5000 == 0)
            assert_all_found(&t, there, MANY);
    }
    assert_all_found(&t, there, MANY);
    exti__link_table_free(&t);
}

static void objects_that_move_are_found(void **state)
{
    struct link_table t;

    (void)state;
    exti__link_table_begin(&t);
    for (size_t i = 0; i < MANY; i++)
        add(&t, i, LINK_HOST_FIRST);
    /* Often enough for deleted slots to be swept out many times. */
    for (size_t round = 1; round < 40; round++)
        for (size_t i = 0; i < MANY; i++) {
            const uint32_t at = exti__link_find_native(&t, native_at(i));

            exti__link_moved(&t, at, host_at(i + round * MANY));
            assert_int_equal(exti__link_find_host(&t, host_at(i + round * MANY)), at);
            assert_int_equal(exti__link_find_host(&t, host_at(i + (round - 1) * MANY)), NO_LINK);
        }
    exti__link_table_free(&t);
}

/* All move, and all but each `stays`th end, or, if that is negative, none but those. */
static void move_and_end(int stays)
{
    const size_t nth = (size_t)(stays < 0 ? -stays : stays);
    uint32_t at[MANY], ending = 0;
    struct link_table t;

#define ENDS(i) (((i) % nth == 0) == (stays < 0))
    exti__link_table_begin(&t);
    for (size_t i = 0; i < MANY; i++) {
        at[i] = add(&t, i, LINK_HOST_FIRST);
        ending += ENDS(i);
    }
    exti__link_moves_begin(&t, ending);
    for (size_t i = 0; i < MANY; i++) {
        t.links[at[i]].host = host_at(i + MANY);
        if (ENDS(i)) {
            exti__link_unlist(&t, at[i]);
            exti__link_give_back(&t, at[i]);
        }
    }
    exti__link_moves_end(&t);
    for (size_t i = 0; i < MANY; i++) {
        const uint32_t expected = ENDS(i) ? NO_LINK : at[i];

        assert_int_equal(exti__link_find_native(&t, native_at(i)), expected);
        assert_int_equal(exti__link_find_host(&t, host_at(i + MANY)), expected);
        assert_int_equal(exti__link_find_host(&t, host_at(i)), NO_LINK);
    }
    exti__link_table_free(&t);
#undef ENDS
}

static void many_move_and_some_end(void **state)
{
    (void)state;
    move_and_end(-3);
}

static void many_move_and_most_end(void **state)
{
    (void)state;
    move_and_end(3);
    move_and_end(MANY);
}

/* A proxy is not found by its object. */
static void some_are_by_native_alone(void **state)
{
    struct link_table t;
    uint32_t at;

    (void)state;
    exti__link_table_begin(&t);
    at = add(&t, 0, 0);
    assert_int_equal(exti__link_find_native(&t, native_at(0)), at);
    assert_int_equal(exti__link_find_host(&t, host_at(0)), NO_LINK);
    exti__link_moved(&t, at, host_at(1));
    assert_int_equal(t.links[at].host, host_at(1));
    exti__link_moves_begin(&t, 0);
    exti__link_moves_end(&t);
    exti__link_unlist(&t, at);
    assert_int_equal(exti__link_find_native(&t, native_at(0)), NO_LINK);
    exti__link_table_free(&t);
}

static void without_memory_nothing_changes(void **state)
{
    static bool there[MANY];
    struct link_table t;
    long failed = 0;

    (void)state;
    exti__link_table_begin(&t);
    for (size_t i = 0; i < MANY; i++)
        for (long fails = 0; !there[i]; fails++) {
            exti__mem_fail_after(fails);
            there[i] = add(&t, i, LINK_HOST_FIRST) != NO_LINK;
            exti__mem_fail_after(-1);
            failed += !there[i];
            if (!there[i])
                assert_all_found(&t, there, i + 1);
        }
    assert_true(failed > 10);
    assert_all_found(&t, there, MANY);
    exti__link_table_free(&t);
}

static void a_link_takes_the_place_of_another(void **state)
{
    struct link_table t;
    struct link_place place;
    uint32_t first, second;

    (void)state;
    exti__link_table_begin(&t);
    first = add(&t, 0, 0);
    assert_true(exti__link_make_room(&t, 0));
    place = exti__link_place_native(&t, native_at(0));
    assert_int_equal(place.link, first);
    second = exti__link_add(&t, host_at(1), native_at(0), 0, place.at, 0);
    t.links[first].state |= LINK_REPLACED;
    assert_int_equal(exti__link_find_native(&t, native_at(0)), second);
    exti__link_unlist(&t, first);
    exti__link_give_back(&t, first);
    assert_int_equal(exti__link_find_native(&t, native_at(0)), second);
    assert_int_equal(t.by_native.used, 1);
    exti__link_table_free(&t);
}

/* 24 bytes beyond the two pointers, whatever the number. */
static void a_link_is_small(void **state)
{
    struct link_table t;

    (void)state;
    exti__link_table_begin(&t);
    for (size_t i = 0; i < 1000000; i++) {
        add(&t, i, LINK_HOST_FIRST);
        if (i % 1000 == 999)
            assert_true(exti__link_table_memory(&t) <= (i + 1) * 40 + 1024);
    }
    exti__link_table_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_come_and_go),
        cmocka_unit_test(objects_that_move_are_found),
        cmocka_unit_test(many_move_and_some_end),
        cmocka_unit_test(many_move_and_most_end),
        cmocka_unit_test(some_are_by_native_alone),
        cmocka_unit_test(without_memory_nothing_changes),
        cmocka_unit_test(a_link_takes_the_place_of_another),
        cmocka_unit_test(a_link_is_small),
    };

    return cmocka_run_group_tests_name("link/table", tests, NULL, NULL);
}
