#include "tests/support/exti_test.h"

#include "base/span.h"

static const uint8_t bytes[16] = {0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
                                  'a',  'b',  0,    'c',  'd',  0,    'e',  'f'};

/* As if the 16 bytes lay at 0x1000 of a file. */
static struct exti_span at_1000(void)
{
    struct exti_span s = exti__span(bytes, sizeof bytes);

    s.base = 0x1000;
    return s;
}

static void new_span_starts_at_offset_0(void **state)
{
    struct exti_span s = exti__span(bytes, 5);

    (void)state;
    assert_ptr_equal(s.p, bytes);
    assert_int_equal(s.n, 5);
    assert_int_equal(s.base, 0);
}

static void sub_takes_what_lies_within(void **state)
{
    static const struct {
        uint64_t off, len;
        int code;
    } cases[] = {
        {0, 0, EXTI_OK},
        {0, 16, EXTI_OK},
        {4, 8, EXTI_OK},
        {16, 0, EXTI_OK},
        {0, 17, EXTI_E_FORMAT},
        {1, 16, EXTI_E_FORMAT},
        {16, 1, EXTI_E_FORMAT},
        {17, 0, EXTI_E_FORMAT},
        {UINT64_MAX, 0, EXTI_E_FORMAT},
        {UINT64_MAX - 0x0ffe, 1, EXTI_E_FORMAT},
        {8, UINT64_MAX, EXTI_E_FORMAT},
        {8, UINT64_MAX - 7, EXTI_E_FORMAT},
        {UINT64_MAX, UINT64_MAX, EXTI_E_FORMAT},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct exti_span out = {.n = 99};
        struct exti_error err = {0};
        uint64_t at = cases[i].off > UINT64_MAX - 0x1000 ? EXTI_NO_OFFSET : 0x1000 + cases[i].off;

        assert_exti(exti__span_sub(at_1000(), cases[i].off, cases[i].len, "thing", &out, &err),
                    cases[i].code, &err, at);
        if (cases[i].code) {
            assert_int_equal(out.n, 99);
            assert_says(&err, "thing: needs ");
            continue;
        }
        assert_ptr_equal(out.p, bytes + cases[i].off);
        assert_int_equal(out.n, cases[i].len);
        assert_int_equal(out.base, at);
        assert_string_equal(err.message, "");
    }
}

static void error_of_sub_says_how_much_is_left(void **state)
{
    struct exti_span out;
    struct exti_error err;

    (void)state;
    exti__span_sub(at_1000(), 12, 10, "DT_STRTAB", &out, &err);
    assert_string_equal(err.message, "DT_STRTAB: needs 10 bytes, 4 left");
    exti__span_sub(at_1000(), 20, 10, "DT_STRTAB", &out, &err);
    assert_string_equal(err.message, "DT_STRTAB: needs 10 bytes, 0 left");
}

static void view_of_a_view_reports_file_offsets(void **state)
{
    struct exti_span outer, inner;
    struct exti_error err;

    (void)state;
    assert_ok(exti__span_sub(at_1000(), 4, 8, "outer", &outer, &err), &err);
    assert_ok(exti__span_sub(outer, 2, 4, "inner", &inner, &err), &err);
    assert_int_equal(inner.base, 0x1006);
    assert_ptr_equal(inner.p, bytes + 6);
    assert_exti(exti__span_sub(inner, 3, 2, "x", &outer, &err), EXTI_E_FORMAT, &err, 0x1009);
}

static void table_takes_what_lies_within(void **state)
{
    static const struct {
        uint64_t off, count, entsize;
        int code;
        const char *says;
    } cases[] = {
        {0, 2, 8, EXTI_OK, NULL},
        {8, 1, 8, EXTI_OK, NULL},
        {16, 0, 8, EXTI_OK, NULL},
        {0, 0, 1000, EXTI_OK, NULL},
        {1, 2, 8, EXTI_E_FORMAT, "needs 16 bytes, 15 left"},
        {0, 17, 1, EXTI_E_FORMAT, "needs 17 bytes, 16 left"},
        {0, 1, 0, EXTI_E_FORMAT, "entry size is 0"},
        {0, 0, 0, EXTI_E_FORMAT, "entry size is 0"},
        {4, UINT64_MAX, 2, EXTI_E_FORMAT, "overflow"},
        {4, 1ull << 61, 8, EXTI_E_FORMAT, "overflow"},
        {17, 0, 8, EXTI_E_FORMAT, "0 left"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct exti_span out;
        struct exti_error err = {0};

        assert_exti(exti__span_table(at_1000(), cases[i].off, cases[i].count, cases[i].entsize,
                                     "DT_SYMTAB", &out, &err),
                    cases[i].code, &err, 0x1000 + cases[i].off);
        if (cases[i].says)
            assert_says(&err, cases[i].says);
        else
            assert_int_equal(out.n, cases[i].count * cases[i].entsize);
    }
}

static void string_ends_within_the_view(void **state)
{
    static const struct {
        uint64_t off;
        const char *want; /* NULL: refused */
    } cases[] = {
        {8, "ab"},  {9, "b"},   {10, ""},   {11, "cd"},
        {14, NULL}, {15, NULL}, {16, NULL}, {UINT64_MAX, NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const char *s = "untouched";
        struct exti_error err = {0};
        uint64_t at = cases[i].off < 0x1000 ? 0x1000 + cases[i].off : EXTI_NO_OFFSET;

        assert_exti(exti__span_cstr(at_1000(), cases[i].off, "DT_SONAME", &s, &err),
                    cases[i].want ? EXTI_OK : EXTI_E_FORMAT, &err, at);
        assert_string_equal(s, cases[i].want ? cases[i].want : "untouched");
    }
}

static void string_without_end_is_reported(void **state)
{
    const char *s;
    struct exti_error err;

    (void)state;
    exti__span_cstr(at_1000(), 14, "DT_NEEDED", &s, &err);
    assert_string_equal(err.message, "DT_NEEDED: string has no end");
}

static void cursor_reads_either_byte_order(void **state)
{
    struct exti_error err;
    struct exti_cur c = exti__cur(at_1000(), false);

    (void)state;
    assert_int_equal(exti__cur_u8(&c), 0x01);
    assert_int_equal(exti__cur_u16(&c), 0x0302);
    assert_int_equal(exti__cur_u32(&c), 0x07060504);
    assert_ok(exti__cur_end(&c, "header", &err), &err);

    c = exti__cur(at_1000(), true);
    assert_int_equal(exti__cur_u8(&c), 0x01);
    assert_int_equal(exti__cur_u16(&c), 0x0203);
    assert_int_equal(exti__cur_u32(&c), 0x04050607);

    c = exti__cur(at_1000(), false);
    assert_int_equal(exti__cur_u64(&c), 0x0807060504030201);
    c = exti__cur(at_1000(), true);
    assert_int_equal(exti__cur_u64(&c), 0x0102030405060708);
    assert_ok(exti__cur_end(&c, "header", &err), &err);
}

static uint64_t read_u8(struct exti_cur *c)
{
    return exti__cur_u8(c);
}

static uint64_t read_u16(struct exti_cur *c)
{
    return exti__cur_u16(c);
}

static uint64_t read_u32(struct exti_cur *c)
{
    return exti__cur_u32(c);
}

static uint64_t read_u64(struct exti_cur *c)
{
    return exti__cur_u64(c);
}

static const struct {
    uint64_t (*read)(struct exti_cur *c);
    size_t size;
} readers[] = {{read_u8, 1}, {read_u16, 2}, {read_u32, 4}, {read_u64, 8}};

static void read_past_the_end_sticks(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(readers); i++) {
        struct exti_cur c = exti__cur(at_1000(), i % 2);
        struct exti_error err;
        size_t at = sizeof bytes - readers[i].size + 1;

        exti__cur_skip(&c, at);
        assert_int_equal(readers[i].read(&c), 0);
        /* Even a read that would fit by itself. */
        assert_int_equal(exti__cur_u8(&c), 0);
        exti__cur_skip(&c, 0);
        exti__cur_align(&c, 1);
        assert_exti(exti__cur_end(&c, "header", &err), EXTI_E_FORMAT, &err, 0x1000 + at);
        assert_string_equal(err.message, "header: ends early, after 16 bytes");
    }
}

static void last_value_can_be_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(readers); i++) {
        struct exti_cur c = exti__cur(at_1000(), false);
        struct exti_error err;

        exti__cur_skip(&c, sizeof bytes - readers[i].size);
        assert_int_not_equal(readers[i].read(&c), 0);
        assert_ok(exti__cur_end(&c, "header", &err), &err);
        assert_int_equal(c.at, sizeof bytes);
    }
}

static void skip_stays_within(void **state)
{
    static const struct {
        uint64_t n;
        int code;
    } cases[] = {
        {0, EXTI_OK},
        {12, EXTI_OK},
        {13, EXTI_E_FORMAT},
        {UINT64_MAX, EXTI_E_FORMAT},
        {UINT64_MAX - 3, EXTI_E_FORMAT},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct exti_cur c = exti__cur(at_1000(), false);
        struct exti_error err = {0};

        exti__cur_u32(&c);
        exti__cur_skip(&c, cases[i].n);
        assert_exti(exti__cur_end(&c, "header", &err), cases[i].code, &err, 0x1004);
    }
}

static void align_counts_from_the_views_start(void **state)
{
    static const struct {
        uint64_t at, align, want;
        bool good;
    } cases[] = {
        {0, 8, 0, true},  {1, 4, 4, true},  {3, 4, 4, true},
        {4, 4, 4, true},  {9, 8, 16, true}, {1, 32, 0, false},
        {1, 3, 0, false}, {1, 0, 0, false}, {1, 1ull << 63, 0, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct exti_cur c = exti__cur(at_1000(), false);
        struct exti_error err = {0};

        exti__cur_skip(&c, cases[i].at);
        exti__cur_align(&c, cases[i].align);
        assert_exti(exti__cur_end(&c, "note", &err), cases[i].good ? EXTI_OK : EXTI_E_FORMAT, &err,
                    ANY_OFFSET);
        if (cases[i].good)
            assert_int_equal(c.at, cases[i].want);
    }
}

static void empty_view_gives_nothing(void **state)
{
    struct exti_cur c = exti__cur(exti__span(NULL, 0), false);
    struct exti_span out;
    struct exti_error err;
    const char *s;

    (void)state;
    assert_ok(exti__span_sub(exti__span(NULL, 0), 0, 0, "x", &out, &err), &err);
    assert_exti(exti__span_cstr(exti__span(NULL, 0), 0, "x", &s, &err), EXTI_E_FORMAT, &err, 0);
    assert_int_equal(exti__cur_u8(&c), 0);
    assert_exti(exti__cur_end(&c, "x", &err), EXTI_E_FORMAT, &err, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_span_starts_at_offset_0),
        cmocka_unit_test(sub_takes_what_lies_within),
        cmocka_unit_test(error_of_sub_says_how_much_is_left),
        cmocka_unit_test(view_of_a_view_reports_file_offsets),
        cmocka_unit_test(table_takes_what_lies_within),
        cmocka_unit_test(string_ends_within_the_view),
        cmocka_unit_test(string_without_end_is_reported),
        cmocka_unit_test(cursor_reads_either_byte_order),
        cmocka_unit_test(read_past_the_end_sticks),
        cmocka_unit_test(last_value_can_be_read),
        cmocka_unit_test(skip_stays_within),
        cmocka_unit_test(align_counts_from_the_views_start),
        cmocka_unit_test(empty_view_gives_nothing),
    };

    return cmocka_run_group_tests_name("base/span", tests, NULL, NULL);
}
