#include "tests/support/exti_test.h"

#include <string.h>

#include "base/mem.h"
#include "macho/edit/macho_put_leb.h"
#include "macho/read/macho_leb.h"

static struct exti_cur cursor(const void *p, size_t n)
{
    return exti__cur(exti__span(p, n), false);
}

static void unsigned_numbers_are_read_back(void **state)
{
    static const uint64_t numbers[] = {0, 1, 0x7f, 0x80, 0x3fff, 0x4000, UINT32_MAX, UINT64_MAX};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        struct exti_buf b = exti__buf(16);
        struct exti_cur c;

        assert_int_equal(exti__macho_put_uleb(&b, numbers[i], NULL), 0);
        c = cursor(b.p, b.n);
        assert_int_equal(exti__macho_uleb(&c), numbers[i]);
        assert_false(c.failed);
        assert_int_equal(c.at, b.n);
        exti__buf_free(&b);
    }
}

static void signed_numbers_are_read_back(void **state)
{
    static const int64_t numbers[] = {0,    1,     -1,        63,        64,       -64,
                                      -65,  127,   128,       -127,      -128,     -129,
                                      8191, -8192, INT32_MIN, INT64_MIN, INT64_MAX};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        struct exti_buf b = exti__buf(16);
        struct exti_cur c;

        assert_int_equal(exti__macho_put_sleb(&b, numbers[i], NULL), 0);
        c = cursor(b.p, b.n);
        assert_true(exti__macho_sleb(&c) == numbers[i]);
        assert_false(c.failed);
        assert_int_equal(c.at, b.n);
        exti__buf_free(&b);
    }
}

/* DWARF 4, figures 22 and 23. */
static void encodings_agree_with_the_dwarf_standard(void **state)
{
    static const struct {
        int64_t value;
        uint8_t bytes[2], n;
    } known[] = {{2, {2}, 1},         {-2, {0x7e}, 1},
                 {127, {0xff, 0}, 2}, {-127, {0x81, 0x7f}, 2},
                 {128, {0x80, 1}, 2}, {-129, {0xff, 0x7e}, 2}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
        struct exti_buf b = exti__buf(16);

        assert_int_equal(exti__macho_put_sleb(&b, known[i].value, NULL), 0);
        assert_int_equal(b.n, known[i].n);
        assert_memory_equal(b.p, known[i].bytes, b.n);
        exti__buf_free(&b);
    }
}

static void numbers_past_64_bits_or_the_end_fail(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        bool is_signed;
    } bad[] = {
        {"", 0, false},
        {"\x80", 1, false},
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10, false},
        {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 11, false},
        {"", 0, true},
        {"\xff", 1, true},
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10, true},
        {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 11, true},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct exti_cur c = cursor(bad[i].bytes, bad[i].n);

        if (bad[i].is_signed)
            assert_int_equal(exti__macho_sleb(&c), 0);
        else
            assert_int_equal(exti__macho_uleb(&c), 0);
        assert_true(c.failed);
    }
}

static void a_failed_cursor_gives_zero(void **state)
{
    struct exti_cur c = cursor("\x05", 1);

    (void)state;
    c.failed = true;
    assert_int_equal(exti__macho_uleb(&c), 0);
    assert_int_equal(exti__macho_sleb(&c), 0);
    assert_string_equal(exti__macho_cur_cstr(&c), "");
}

static void strings_move_the_cursor_behind_their_nul(void **state)
{
    struct exti_cur c = cursor("ab\0\0cd", 6);

    (void)state;
    assert_string_equal(exti__macho_cur_cstr(&c), "ab");
    assert_string_equal(exti__macho_cur_cstr(&c), "");
    assert_int_equal(c.at, 4);
    assert_false(c.failed);
    assert_string_equal(exti__macho_cur_cstr(&c), "");
    assert_true(c.failed);
    c = cursor("", 0);
    assert_string_equal(exti__macho_cur_cstr(&c), "");
    assert_true(c.failed);
}

static void a_full_buffer_is_reported(void **state)
{
    struct exti_buf b = exti__buf(1);

    (void)state;
    assert_int_equal(exti__macho_put_uleb(&b, 0x80, NULL), EXTI_E_NOSPACE);
    assert_int_equal(exti__macho_put_sleb(&b, 0x80, NULL), EXTI_E_NOSPACE);
    exti__buf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unsigned_numbers_are_read_back),
        cmocka_unit_test(signed_numbers_are_read_back),
        cmocka_unit_test(encodings_agree_with_the_dwarf_standard),
        cmocka_unit_test(numbers_past_64_bits_or_the_end_fail),
        cmocka_unit_test(a_failed_cursor_gives_zero),
        cmocka_unit_test(strings_move_the_cursor_behind_their_nul),
        cmocka_unit_test(a_full_buffer_is_reported),
    };

    return cmocka_run_group_tests_name("macho/macho_leb", tests, NULL, NULL);
}
