/* Shifting __unwind_info: a hand-made section with every kind of table, and a corruption of each
 * of its numbers. */
#include "tests/support/exti_test.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "macho/edit/macho_unwind.h"

#define P 0x8000u
#define BASE 0x1000u /* of the section in the file */

/* Offsets in the section. */
enum {
    ENCODINGS = 28,
    PERSONALITIES = 32,
    INDEX = 36,
    LSDAS = 72,
    REGULAR = 88,
    COMPRESSED = 112,
    SIZE = 132
};

static const uint32_t section[SIZE / 4] = {
    1,
    ENCODINGS,
    1,
    PERSONALITIES,
    1,
    INDEX,
    3,          /* the header, version first */
    0x54000001, /* a common encoding */
    0x7000,     /* a personality's pointer */
    0x2000,
    REGULAR,
    LSDAS, /* the index */
    0x2800,
    COMPRESSED,
    LSDAS + 8, /* */
    0x3000,
    0,
    LSDAS + 16, /* its end */
    0x2010,
    0x5000,
    0x2810,
    0x5010, /* LSDAs: function, LSDA */
    2,
    2 << 16 | 8, /* regular page: kind, count and start */
    0x2000,
    0x04000000,
    0x2010,
    0x14000000, /* function, encoding */
    3,
    1 << 16 | 12,
    1 << 16 | 16, /* compressed page */
    0x01000010,
    0x03000040, /* a function in it, an encoding of its own */
};

static const size_t addresses[] = {PERSONALITIES, INDEX,     INDEX + 12, INDEX + 24,  LSDAS,
                                   LSDAS + 4,     LSDAS + 8, LSDAS + 12, REGULAR + 8, REGULAR + 16};

/* Shifts the section's first `n` bytes in an allocated copy, with `width` bytes of `value` at
 * `at`.  The caller frees the copy. */
static int shift(size_t n, size_t at, uint64_t value, size_t width, uint8_t **out,
                 struct exti_error *err)
{
    uint8_t *p = malloc(n);

    assert_non_null(p);
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(section[i / 4] >> i % 4 * 8);
    for (size_t i = 0; i < width; i++)
        p[at + i] = (uint8_t)(value >> 8 * i);
    *out = p;
    return exti__macho_unwind_shift(p, n, BASE, P, err);
}

static void shift_moves_what_counts_from_the_image(void **state)
{
    struct test *t = *state;
    uint8_t *p;

    assert_ok(shift(SIZE, 0, 1, 4, &p, &t->err), &t->err);
    for (size_t at = 0, k = 0; at < SIZE; at += 4) {
        uint32_t was = section[at / 4], is;

        memcpy(&is, p + at, 4);
        if (k < ARRAY_SIZE(addresses) && at == addresses[k]) {
            assert_int_equal(is, was + P);
            k++;
        } else {
            assert_int_equal(is, was);
        }
    }
    free(p);
}

static void shift_rejects_bad_tables(void **state)
{
    static const struct {
        size_t at;
        uint32_t value;
        int code;
        uint64_t offset; /* in the section */
        const char *says;
    } bad[] = {
        {0, 2, EXTI_E_UNSUPPORTED, 0, "version 2 cannot be moved"},
        {12, SIZE, EXTI_E_FORMAT, SIZE, "personality array: needs 4 bytes, 0 left"},
        {12, 0xfffffffc, EXTI_E_FORMAT, 0xfffffffc, "personality array: needs 4 bytes"},
        {12, PERSONALITIES + 2, EXTI_E_FORMAT, PERSONALITIES + 2, "not aligned"},
        {12, 4, EXTI_E_FORMAT, 4, "personality array overlaps"},
        {16, 0xffffffff, EXTI_E_FORMAT, SIZE, "personality array"},
        {16, 2, EXTI_E_FORMAT, INDEX, "index entry's function overlaps"},
        {20, 0, EXTI_E_FORMAT, 0, "overlaps"},
        {20, INDEX + 1, EXTI_E_FORMAT, INDEX + 1, "not aligned"},
        {20, SIZE, EXTI_E_FORMAT, SIZE, "index: needs"},
        {24, 0xffffffff, EXTI_E_FORMAT, INDEX, "index: needs"},
        {PERSONALITIES, 0xfffff000, EXTI_E_UNSUPPORTED, PERSONALITIES, "would not fit 32 bits"},
        {INDEX, 0xffff8000, EXTI_E_UNSUPPORTED, INDEX, "index entry's function"},
        {INDEX + 4, INDEX, EXTI_E_FORMAT, INDEX, "second-level page overlaps"},
        {INDEX + 4, SIZE - 4, EXTI_E_FORMAT, SIZE - 4, "second-level page: needs 8 bytes, 4 left"},
        {INDEX + 4, REGULAR + 1, EXTI_E_FORMAT, REGULAR + 1, "not aligned"},
        {INDEX + 16, REGULAR, EXTI_E_FORMAT, REGULAR, "second-level page overlaps"},
        {INDEX + 8, LSDAS + 24, EXTI_E_FORMAT, 0, "LSDA array from 96 to 88"},
        {INDEX + 8, LSDAS + 4, EXTI_E_FORMAT, 0, "not whole entries"},
        {INDEX + 32, 0xfffffff8, EXTI_E_FORMAT, ANY_OFFSET, "LSDA array"},
        {INDEX + 8, REGULAR - 72, EXTI_E_FORMAT, 16, "LSDA array's function overlaps"},
        {LSDAS + 4, 0xffffffff, EXTI_E_UNSUPPORTED, LSDAS + 4, "LSDA array's LSDA"},
        {REGULAR, 4, EXTI_E_UNSUPPORTED, REGULAR, "kind 4"},
        {REGULAR + 4, 2 << 16 | 9, EXTI_E_FORMAT, REGULAR + 9, "not aligned"},
        {REGULAR + 4, 2 << 16 | 0, EXTI_E_FORMAT, REGULAR, "regular page's function overlaps"},
        {REGULAR + 4, 0xffff0008, EXTI_E_FORMAT, ANY_OFFSET, "regular page's function"},
        {REGULAR + 8, 0xffffffff, EXTI_E_UNSUPPORTED, REGULAR + 8, "regular page's function"},
    };
    struct test *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        uint8_t *p;
        int rc = shift(SIZE, bad[i].at, bad[i].value, 4, &p, &t->err);

        free(p);
        if (rc != bad[i].code)
            print_message("row %zu\n", i);
        assert_exti(rc, bad[i].code, &t->err,
                    bad[i].offset == ANY_OFFSET ? ANY_OFFSET : bad[i].offset + BASE);
        assert_says(&t->err, bad[i].says);
        memset(&t->err, 0, sizeof t->err);
    }
}

static void shift_rejects_a_section_that_ends_early(void **state)
{
    struct test *t = *state;

    for (size_t n = 0; n < SIZE; n++) {
        uint8_t *p;
        int rc = shift(n, 0, 0, 0, &p, &t->err);

        free(p);
        /* Of a compressed page only the kind is read. */
        if (n < COMPRESSED + 8)
            assert_exti(rc, EXTI_E_FORMAT, &t->err, ANY_OFFSET);
        else
            assert_int_equal(rc, 0);
        memset(&t->err, 0, sizeof t->err);
    }
}

/* Every pair of bytes gets many values: the result may be an error, but nothing outside is
 * touched. */
static void shift_survives_any_number(void **state)
{
    static const uint64_t values[] = {
        0,    1,      3,      4,          8,          28,         0x7c,       0x80,
        0x84, 0x7fff, 0xffff, 0xfffffff0, 0xfffffffc, 0xffffffff, 0x80000000, 0x10000};
    struct test *t = *state;

    for (size_t at = 0; at + 4 <= SIZE; at += 2)
        for (size_t k = 0; k < ARRAY_SIZE(values); k++) {
            uint8_t *p;
            int rc = shift(SIZE, at, values[k], 4, &p, &t->err);

            free(p);
            if (rc)
                assert_exti(rc, t->err.code, &t->err, ANY_OFFSET);
            memset(&t->err, 0, sizeof t->err);
        }
}

static void shift_reports_lack_of_memory(void **state)
{
    struct test *t = *state;
    uint8_t *p;
    int rc;

    exti__mem_fail_after(0);
    rc = shift(SIZE, 0, 1, 4, &p, &t->err);
    exti__mem_fail_after(-1);
    free(p);
    assert_exti(rc, EXTI_E_NOMEM, &t->err, ANY_OFFSET);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(shift_moves_what_counts_from_the_image),
        exti_test(shift_rejects_bad_tables),
        exti_test(shift_rejects_a_section_that_ends_early),
        exti_test(shift_survives_any_number),
        exti_test(shift_reports_lack_of_memory),
    };

    return cmocka_run_group_tests_name("macho/macho_unwind", tests, NULL, NULL);
}
