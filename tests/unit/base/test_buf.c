#include "tests/support/exti_test.h"

#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

static int setup(void **state)
{
    static struct exti_buf b;

    b = exti__buf(1000);
    *state = &b;
    return 0;
}

static int teardown(void **state)
{
    exti__mem_fail_after(-1);
    exti__buf_free(*state);
    return 0;
}

#define buf_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static void append_keeps_order(void **state)
{
    struct exti_buf *b = *state;
    struct exti_error err;
    uint8_t want[600];

    for (size_t i = 0; i < sizeof want; i++) {
        want[i] = (uint8_t)i;
        assert_ok(exti__buf_append(b, want + i, 1, &err), &err);
    }
    assert_int_equal(b->n, sizeof want);
    assert_memory_equal(b->p, want, sizeof want);
}

static void nothing_can_be_appended(void **state)
{
    struct exti_buf *b = *state;
    struct exti_error err;

    assert_ok(exti__buf_append(b, NULL, 0, &err), &err);
    assert_ok(exti__buf_zeros(b, 0, &err), &err);
    assert_ok(exti__buf_align(b, 8, &err), &err);
    assert_ok(exti__buf_patch(b, 0, NULL, 0, &err), &err);
    assert_int_equal(b->n, 0);
}

static void zeros_and_align_pad(void **state)
{
    struct exti_buf *b = *state;
    struct exti_error err;

    assert_ok(exti__buf_append(b, "abc", 3, &err), &err);
    assert_ok(exti__buf_align(b, 8, &err), &err);
    assert_ok(exti__buf_align(b, 8, &err), &err);
    assert_ok(exti__buf_append(b, "d", 1, &err), &err);
    assert_ok(exti__buf_zeros(b, 2, &err), &err);
    assert_int_equal(b->n, 11);
    assert_memory_equal(b->p, "abc\0\0\0\0\0d\0\0", 11);
}

static void align_takes_only_powers_of_2(void **state)
{
    struct exti_buf *b = *state;
    struct exti_error err;

    assert_exti(exti__buf_align(b, 0, &err), EXTI_E_ARG, &err, EXTI_NO_OFFSET);
    assert_exti(exti__buf_align(b, 12, &err), EXTI_E_ARG, &err, EXTI_NO_OFFSET);
    assert_says(&err, "12");
}

static void limit_is_reached_but_not_passed(void **state)
{
    static const uint8_t block[1001];
    struct exti_buf *b = *state;
    struct exti_error err;

    assert_exti(exti__buf_append(b, block, 1001, &err), EXTI_E_NOSPACE, &err, EXTI_NO_OFFSET);
    assert_says(&err, "1000");
    assert_ok(exti__buf_append(b, block, 999, &err), &err);
    assert_exti(exti__buf_zeros(b, 2, &err), EXTI_E_NOSPACE, &err, EXTI_NO_OFFSET);
    assert_exti(exti__buf_align(b, 1024, &err), EXTI_E_NOSPACE, &err, EXTI_NO_OFFSET);
    assert_exti(exti__buf_append(b, block, SIZE_MAX, &err), EXTI_E_NOSPACE, &err, EXTI_NO_OFFSET);
    assert_ok(exti__buf_zeros(b, 1, &err), &err);
    assert_int_equal(b->n, 1000);
    assert_exti(exti__buf_zeros(b, 1, &err), EXTI_E_NOSPACE, &err, EXTI_NO_OFFSET);
    assert_int_equal(b->n, 1000);
}

static void limit_of_0_holds_nothing(void **state)
{
    struct exti_buf b = exti__buf(0);
    struct exti_error err;

    (void)state;
    assert_ok(exti__buf_append(&b, "", 0, &err), &err);
    assert_exti(exti__buf_append(&b, "x", 1, &err), EXTI_E_NOSPACE, &err, EXTI_NO_OFFSET);
    exti__buf_free(&b);
}

static void patch_overwrites_in_place(void **state)
{
    struct exti_buf *b = *state;
    struct exti_error err;

    assert_ok(exti__buf_append(b, "abcdef", 6, &err), &err);
    assert_ok(exti__buf_patch(b, 2, "XY", 2, &err), &err);
    assert_ok(exti__buf_patch(b, 5, "Z", 1, &err), &err);
    assert_memory_equal(b->p, "abXYeZ", 6);
}

static void patch_stays_within(void **state)
{
    static const struct {
        size_t off, n;
    } cases[] = {{5, 2}, {6, 1}, {7, 0}, {0, 7}, {SIZE_MAX, 1}, {3, SIZE_MAX}};
    struct exti_buf *b = *state;
    struct exti_error err;

    assert_ok(exti__buf_append(b, "abcdef", 6, &err), &err);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_exti(exti__buf_patch(b, cases[i].off, "XXXXXXX", cases[i].n, &err), EXTI_E_ARG, &err,
                    EXTI_NO_OFFSET);
    assert_memory_equal(b->p, "abcdef", 6);
}

static void no_memory_leaves_the_bytes(void **state)
{
    struct exti_buf *b = *state;
    struct exti_error err;
    uint8_t block[100] = {7};

    assert_ok(exti__buf_append(b, "abc", 3, &err), &err);
    exti__mem_fail_after(0);
    assert_exti(exti__buf_append(b, block, sizeof block, &err), EXTI_E_NOMEM, &err, EXTI_NO_OFFSET);
    exti__mem_fail_after(0);
    assert_exti(exti__buf_zeros(b, 100, &err), EXTI_E_NOMEM, &err, EXTI_NO_OFFSET);
    exti__mem_fail_after(0);
    assert_exti(exti__buf_align(b, 128, &err), EXTI_E_NOMEM, &err, EXTI_NO_OFFSET);
    assert_int_equal(b->n, 3);
    assert_memory_equal(b->p, "abc", 3);
    assert_ok(exti__buf_append(b, block, sizeof block, &err), &err);
}

static void freed_buffer_can_be_used_again(void **state)
{
    struct exti_buf *b = *state, zeroed = {0};
    struct exti_error err;

    assert_ok(exti__buf_append(b, "abc", 3, &err), &err);
    exti__buf_free(b);
    assert_int_equal(b->n, 0);
    assert_int_equal(b->max, 1000);
    assert_ok(exti__buf_append(b, "d", 1, &err), &err);
    assert_memory_equal(b->p, "d", 1);
    exti__buf_free(&zeroed);
}

static void integers_are_stored_in_either_order(void **state)
{
    uint8_t p[8];

    (void)state;
    exti__put_u16(p, 0x0102, false);
    assert_memory_equal(p, "\2\1", 2);
    exti__put_u16(p, 0x0102, true);
    assert_memory_equal(p, "\1\2", 2);
    exti__put_u32(p, 0x01020304, false);
    assert_memory_equal(p, "\4\3\2\1", 4);
    exti__put_u32(p, 0x01020304, true);
    assert_memory_equal(p, "\1\2\3\4", 4);
    exti__put_u64(p, 0xf102030405060708, false);
    assert_memory_equal(p, "\x08\x07\x06\x05\x04\x03\x02\xf1", 8);
    exti__put_u64(p, 0xf102030405060708, true);
    assert_memory_equal(p, "\xf1\x02\x03\x04\x05\x06\x07\x08", 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        buf_test(append_keeps_order),
        buf_test(nothing_can_be_appended),
        buf_test(zeros_and_align_pad),
        buf_test(align_takes_only_powers_of_2),
        buf_test(limit_is_reached_but_not_passed),
        buf_test(limit_of_0_holds_nothing),
        buf_test(patch_overwrites_in_place),
        buf_test(patch_stays_within),
        buf_test(no_memory_leaves_the_bytes),
        buf_test(freed_buffer_can_be_used_again),
        buf_test(integers_are_stored_in_either_order),
    };

    return cmocka_run_group_tests_name("base/buf", tests, NULL, NULL);
}
