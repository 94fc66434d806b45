#include "tests/support/exti_test.h"

#include "base/checked.h"

#define MAX UINT64_MAX

struct pair {
    uint64_t a, b;
    bool fits;
    uint64_t want;
};

static void check_pairs(const struct pair *p, size_t n, bool (*op)(uint64_t, uint64_t, uint64_t *))
{
    for (size_t i = 0; i < n; i++) {
        uint64_t out = 0x1234;

        assert_int_equal(op(p[i].a, p[i].b, &out), p[i].fits);
        /* Stays unchanged if the result does not fit. */
        assert_int_equal(out, p[i].fits ? p[i].want : 0x1234);
    }
}

static void add_detects_overflow(void **state)
{
    static const struct pair cases[] = {
        {0, 0, true, 0},
        {1, 2, true, 3},
        {MAX, 0, true, MAX},
        {MAX - 1, 1, true, MAX},
        {MAX, 1, false, 0},
        {1, MAX, false, 0},
        {MAX, MAX, false, 0},
        {1ull << 63, 1ull << 63, false, 0},
        {UINT32_MAX, 1, true, 1ull << 32},
    };

    (void)state;
    check_pairs(cases, ARRAY_SIZE(cases), exti__add);
}

static void mul_detects_overflow(void **state)
{
    static const struct pair cases[] = {
        {0, MAX, true, 0},
        {1, MAX, true, MAX},
        {2, MAX / 2, true, MAX - 1},
        {2, MAX / 2 + 1, false, 0},
        {1ull << 32, 1ull << 32, false, 0},
        {1ull << 32, (1ull << 32) - 1, true, 0xffffffff00000000},
        {UINT32_MAX, UINT32_MAX, true, 0xfffffffe00000001},
        {MAX, MAX, false, 0},
    };

    (void)state;
    check_pairs(cases, ARRAY_SIZE(cases), exti__mul);
}

static void align_rounds_up(void **state)
{
    static const struct pair cases[] = {
        {0, 8, true, 0},
        {1, 8, true, 8},
        {8, 8, true, 8},
        {9, 8, true, 16},
        {7, 1, true, 7},
        {1, 1ull << 63, true, 1ull << 63},
        {MAX, 1, true, MAX},
        {MAX - 7, 8, true, MAX - 7},
        {MAX - 6, 8, false, 0},
        {MAX, 4096, false, 0},
        {(1ull << 63) + 1, 1ull << 63, false, 0},
    };

    (void)state;
    check_pairs(cases, ARRAY_SIZE(cases), exti__align);
}

static void align_takes_only_powers_of_2(void **state)
{
    static const struct pair cases[] = {
        {5, 0, false, 0},
        {5, 3, false, 0},
        {5, 6, false, 0},
        {5, MAX, false, 0},
    };

    (void)state;
    check_pairs(cases, ARRAY_SIZE(cases), exti__align);
}

static void powers_of_2_are_recognised(void **state)
{
    (void)state;
    assert_false(exti__is_power_of_2(0));
    for (unsigned i = 0; i < 64; i++) {
        uint64_t n = (uint64_t)1 << i;

        assert_true(exti__is_power_of_2(n));
        if (n > 2)
            assert_false(exti__is_power_of_2(n - 1));
        if (n > 1)
            assert_false(exti__is_power_of_2(n + 1));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(add_detects_overflow),
        cmocka_unit_test(mul_detects_overflow),
        cmocka_unit_test(align_rounds_up),
        cmocka_unit_test(align_takes_only_powers_of_2),
        cmocka_unit_test(powers_of_2_are_recognised),
    };

    return cmocka_run_group_tests_name("base/checked", tests, NULL, NULL);
}
