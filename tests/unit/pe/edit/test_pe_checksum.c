#include "tests/unit/pe/pe_faults.h"

#include "pe/edit/pe_checksum.h"

static uint32_t checksum_of_bytes(const void *p, size_t n, uint64_t field)
{
    const struct exti_span s = exti__span(p, n);

    return exti__pe_checksum(&s, 1, field);
}

static void words_are_summed_with_carries_added_back(void **state)
{
    static const struct {
        uint8_t bytes[8];
        size_t n;
        uint32_t sum;
    } table[] = {
        {{0}, 0, 0},
        {{0}, 8, 8},
        {{1}, 1, 1 + 1},
        {{1, 2}, 2, 0x201 + 2},
        {{1, 2, 3}, 3, 0x204 + 3},
        {{0xff, 0xff}, 2, 0xffff + 2},
        {{0xff, 0xff, 0xff, 0xff}, 4, 0xffff + 4},
        {{0xff, 0xff, 1, 0}, 4, 1 + 4},
        {{0xff, 0xff, 2, 0, 0xfe, 0xff}, 6, 1 + 6},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        assert_int_equal(checksum_of_bytes(table[i].bytes, table[i].n, 100), table[i].sum);
}

static void its_own_field_counts_as_zero(void **state)
{
    uint8_t b[11] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

    (void)state;
    for (uint64_t at = 0; at < sizeof b; at++) {
        uint8_t without[sizeof b];

        memcpy(without, b, sizeof b);
        for (size_t i = (size_t)at; i < sizeof b && i < at + 4; i++)
            without[i] = 0;
        assert_int_equal(checksum_of_bytes(b, sizeof b, at),
                         checksum_of_bytes(without, sizeof b, 100));
    }
}

/* Cuts everywhere, also inside words and the field. */
static void a_file_in_parts_has_the_same_checksum(void **state)
{
    uint8_t b[13];
    uint32_t whole;

    (void)state;
    for (size_t i = 0; i < sizeof b; i++)
        b[i] = (uint8_t)(0xf3 - 17 * i);
    whole = checksum_of_bytes(b, sizeof b, 5);
    for (size_t i = 0; i <= sizeof b; i++) {
        for (size_t k = i; k <= sizeof b; k++) {
            const struct exti_span parts[] = {exti__span(b, i), exti__span(b + i, k - i),
                                              exti__span(b + k, sizeof b - k)};

            assert_int_equal(exti__pe_checksum(parts, 3, 5), whole);
        }
    }
    assert_int_equal(exti__pe_checksum(NULL, 0, 5), 0);
}

static void files_have_the_right_checksum(void **state)
{
    static const struct pe_toy_opts kinds[] = {
        {.checksum = true},
        {.checksum = true, .narrow = true, .bound = true},
        {.checksum = true, .symbols = true},
        {.checksum = true, .symbols = true, .certified = true, .full = true},
    };
    struct pe_fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        pe_make(f, kinds[i]);
        assert_int_not_equal(f->file.checksum, 0);
        assert_int_equal(checksum_of_bytes(f->toy.b, f->toy.n, f->file.optional_at + 64),
                         f->file.checksum);
        f->toy.b[f->toy.n - 1] ^= 1;
        assert_int_not_equal(checksum_of_bytes(f->toy.b, f->toy.n, f->file.optional_at + 64),
                             f->file.checksum);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        pe_test(words_are_summed_with_carries_added_back),
        pe_test(its_own_field_counts_as_zero),
        pe_test(a_file_in_parts_has_the_same_checksum),
        pe_test(files_have_the_right_checksum),
    };

    return cmocka_run_group_tests_name("pe/pe_checksum", tests, NULL, NULL);
}
