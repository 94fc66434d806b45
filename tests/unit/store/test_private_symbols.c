#include "tests/support/exti_test.h"

#include <string.h>

#include "base/mem.h"
#include "loader/store/private_symbols.h"

static uint32_t gnu_hash(const char *s)
{
    uint32_t h = 5381;

    while (*s)
        h = h * 33 + (uint8_t)*s++;
    return h;
}

static void private_names_keep_length_and_hash(void **state)
{
    static const char *const names[][2] = {
        {"PyList_New", "QXList_New"},         {"_PyObject_Malloc", "_QXObject_Malloc"},
        {"PY_TIMEOUT_MAX", "Oz_TIMEOUT_MAX"}, {"toy_counter", "uNy_counter"},
        {"_ZN3FooC1Ev", "_Yo3FooC1Ev"},
    };
    char out[64];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        uint32_t next = 0;

        assert_true(exti__hash_preserving_name(names[i][0], &next, out));
        assert_string_equal(out, names[i][1]);
        assert_int_equal(gnu_hash(out), gnu_hash(names[i][0]));
    }
}

static void every_alternative_keeps_the_hash(void **state)
{
    const char *name = "PyUnicode_AsUTF8AndSize";
    char out[64];
    uint32_t next = 0;
    unsigned n = 0;

    (void)state;
    for (; exti__hash_preserving_name(name, &next, out); n++) {
        assert_int_equal(gnu_hash(out), gnu_hash(name));
        assert_string_not_equal(out, name);
        assert_int_equal(
            strspn(out, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"),
            strlen(name));
    }
    assert_true(n > 5);
}

static void some_names_have_no_private_one(void **state)
{
    static const char *const names[] = {"", "x", "__", "a1", "zz", "_Z"};
    char out[8];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        uint32_t next = 0;

        assert_false(exti__hash_preserving_name(names[i], &next, out));
    }
}

static void a_longer_name_keeps_the_bucket(void **state)
{
    static const char *const names[] = {"R_NaN", "t", "zz", ""};
    static const uint32_t buckets[] = {1, 2, 3, 1031, EXTI_PRIVATE_BUCKETS};
    char out[32], last[32];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        for (size_t k = 0; k < ARRAY_SIZE(buckets); k++) {
            const size_t n = strlen(names[i]);
            uint32_t next = 0;

            *last = 0;
            for (int tries = 0; tries < 70; tries++) {
                assert_true(exti__bucket_preserving_name(names[i], buckets[k], &next, out));
                assert_int_equal(strlen(out), n + EXTI_PRIVATE_SUFFIX);
                assert_memory_equal(out, names[i], n);
                assert_int_equal(gnu_hash(out) % buckets[k], gnu_hash(names[i]) % buckets[k]);
                assert_true(strcmp(out, last) > 0);
                strcpy(last, out);
            }
        }
}

/* There are so many suffixes, and no more. */
static void longer_names_come_to_an_end(void **state)
{
    char out[32];
    uint32_t next = 0, most = 62 * 62 * 62 * 62, n = 0;

    (void)state;
    while (exti__bucket_preserving_name("R_NaN", 1, &next, out))
        n++;
    assert_int_equal(n, most);
    assert_string_equal(out, "R_NaN__zzzz");
    assert_false(exti__bucket_preserving_name("R_NaN", 1, &next, out));
}

/* A file may claim any number of buckets. */
static void any_bucket_does_where_there_are_too_many(void **state)
{
    static const uint32_t buckets[] = {0, EXTI_PRIVATE_BUCKETS + 1, UINT32_MAX};
    char out[32];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(buckets); i++) {
        uint32_t next = 0;

        assert_true(exti__bucket_preserving_name("R_NaN", buckets[i], &next, out));
        assert_string_equal(out, "R_NaN__0000");
    }
}

/* An image with the given symbols; imports begin with '!'. */
static struct exti_image *image_of(const char *const *names, size_t n)
{
    static struct exti_image im;

    im = (struct exti_image){0};
    for (size_t i = 0; i < n; i++) {
        bool import = names[i][0] == '!';

        assert_int_equal(exti__image_add_symbol(
                             &im,
                             (struct exti_image_symbol){.name = names[i] + import,
                                                        .flags = import ? 0 : EXTI_SYM_EXPORT},
                             NULL),
                         0);
    }
    return &im;
}

static void a_map_has_exports_only_and_finds_them(void **state)
{
    static const char *const names[] = {"PyB", "PyA", "!malloc", "_init", "_edata", "zz"};
    struct exti_image *im = image_of(names, ARRAY_SIZE(names));
    struct exti_private_symbols map;

    (void)state;
    assert_int_equal(exti__private_symbols_build(im, &map, NULL), 0);
    assert_int_equal(map.count, 3);
    assert_string_equal(map.renames[0].from, "PyA");
    assert_string_equal(exti__private_symbol_find(&map, "PyB"), "QXB");
    assert_null(exti__private_symbol_find(&map, "malloc"));
    assert_null(exti__private_symbol_find(&map, "_init"));
    assert_string_equal(exti__private_symbol_find(&map, "zz"), "zz__0000");
    exti__private_symbols_free(&map);
    exti__image_clear(im);
}

static void a_taken_name_is_not_given_again(void **state)
{
    static const char *const names[] = {"PyList_New", "QXList_New", "zz", "zz__0000"};
    struct exti_image *im = image_of(names, ARRAY_SIZE(names));
    struct exti_private_symbols map;
    const char *a, *b;

    (void)state;
    assert_int_equal(exti__private_symbols_build(im, &map, NULL), 0);
    a = exti__private_symbol_find(&map, "PyList_New");
    b = exti__private_symbol_find(&map, "QXList_New");
    assert_non_null(a);
    assert_non_null(b);
    assert_string_not_equal(a, "QXList_New");
    assert_string_not_equal(b, "PyList_New");
    assert_int_equal(gnu_hash(a), gnu_hash("PyList_New"));
    assert_string_equal(exti__private_symbol_find(&map, "zz"), "zz__0001");
    exti__private_symbols_free(&map);
    exti__image_clear(im);
}

static void no_two_symbols_get_the_same_private_name(void **state)
{
    /* The two names have pairs that become the same two letters. */
    static const char *const names[] = {"aPyx", "aRWx", "PyRW", "RWPy"};
    struct exti_image *im = image_of(names, ARRAY_SIZE(names));
    struct exti_private_symbols map;

    (void)state;
    assert_int_equal(exti__private_symbols_build(im, &map, NULL), 0);
    for (size_t i = 0; i < map.count; i++)
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(map.renames[i].to, map.renames[j].to);
    exti__private_symbols_free(&map);
    exti__image_clear(im);
}

/* A symbol with several versions is in the table several times. */
static void a_repeated_name_has_one_private_name(void **state)
{
    static const char *const names[] = {"zz", "aPyRWx", "zz", "!zz", "aPyRWx", "zz"};
    struct exti_image *im = image_of(names, ARRAY_SIZE(names));
    struct exti_private_symbols map;

    (void)state;
    assert_int_equal(exti__private_symbols_build(im, &map, NULL), 0);
    assert_int_equal(map.count, 2);
    assert_string_equal(map.renames[0].from, "aPyRWx");
    assert_string_equal(map.renames[0].to, "aQXRWx");
    assert_string_equal(map.renames[1].from, "zz");
    assert_string_equal(map.renames[1].to, "zz__0000");
    exti__private_symbols_free(&map);
    exti__image_clear(im);
}

static void names_of_an_earlier_version_are_the_same_unless_some_are_longer(void **state)
{
    static const char *const names[] = {"PyA", "zz"};
    struct exti_private_symbols map;

    (void)state;
    for (size_t n = 1; n <= ARRAY_SIZE(names); n++) {
        struct exti_image *im = image_of(names, n);

        assert_int_equal(exti__private_symbols_build(im, &map, NULL), 0);
        assert_true(exti__private_symbols_are(&map, EXTI_PRIVATE_NAMES));
        assert_int_equal(exti__private_symbols_are(&map, 1), n == 1);
        exti__private_symbols_free(&map);
        exti__image_clear(im);
    }
}

static void an_empty_image_gives_an_empty_map(void **state)
{
    struct exti_image im = {0};
    struct exti_private_symbols map;

    (void)state;
    assert_int_equal(exti__private_symbols_build(&im, &map, NULL), 0);
    assert_int_equal(map.count, 0);
    assert_null(exti__private_symbol_find(&map, "x"));
    exti__private_symbols_free(&map);
}

static void out_of_memory_leaves_nothing(void **state)
{
    static const char *const names[] = {"PyA", "PyB", "zz"};
    struct exti_image *im = image_of(names, ARRAY_SIZE(names));
    struct exti_private_symbols map;
    struct exti_error err;
    int rc = EXTI_E_NOMEM;

    (void)state;
    for (long n = 0; rc == EXTI_E_NOMEM; n++) {
        exti__mem_fail_after(n);
        rc = exti__private_symbols_build(im, &map, &err);
    }
    exti__mem_fail_after(-1);
    assert_int_equal(rc, 0);
    exti__private_symbols_free(&map);
    exti__image_clear(im);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(private_names_keep_length_and_hash),
        exti_test(every_alternative_keeps_the_hash),
        exti_test(some_names_have_no_private_one),
        exti_test(a_longer_name_keeps_the_bucket),
        exti_test(longer_names_come_to_an_end),
        exti_test(any_bucket_does_where_there_are_too_many),
        exti_test(a_map_has_exports_only_and_finds_them),
        exti_test(a_taken_name_is_not_given_again),
        exti_test(no_two_symbols_get_the_same_private_name),
        exti_test(a_repeated_name_has_one_private_name),
        exti_test(names_of_an_earlier_version_are_the_same_unless_some_are_longer),
        exti_test(an_empty_image_gives_an_empty_map),
        exti_test(out_of_memory_leaves_nothing),
    };

    return cmocka_run_group_tests_name("loader/rename", tests, NULL, NULL);
}
