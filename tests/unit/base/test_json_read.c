#include "tests/support/exti_test.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/json_write.h"
#include "base/mem.h"

/* The teardown frees it, since a failed assertion leaves the test. */
static struct exti_json *root;

static int teardown(void **state)
{
    exti__mem_fail_after(-1);
    exti__json_free(root);
    root = NULL;
    return test_teardown(state);
}

#define json_test(f) cmocka_unit_test_setup_teardown(f, test_setup, teardown)

/* The text lies at the end of a block of its own, so that the sanitizers see a read past it. */
static int read_text(struct test *t, const char *text)
{
    const size_t n = strlen(text);
    char *exact = malloc(n ? n : 1);
    int rc;

    assert_non_null(exact);
    memcpy(exact, text, n);
    exti__json_free(root);
    root = NULL;
    rc = exti__json_read(exact, n, "", &root, &t->err);
    free(exact);
    return rc;
}

static void must_read(struct test *t, const char *text)
{
    assert_ok(read_text(t, text), &t->err);
}

static void values_have_types_and_members(void **state)
{
    struct test *t = *state;
    int64_t n = 7;
    bool yes = false;

    must_read(t, " {\"z\" : [ 1 ,\t-2, []], \"a\":{\"b\":null},\r\n\"t\":true,\"f\":false,"
                 "\"s\":\"x\", \"r\":-1.5e+3 , \"\":\"no name\"} ");
    assert_int_equal(exti__json_count(root, EXTI_JSON_OBJECT), 7);
    assert_string_equal(root->items[0].name, "z");
    assert_int_equal(exti__json_count(exti__json_get(root, "z"), EXTI_JSON_ARRAY), 3);
    assert_int_equal(exti__json_get(root, "z")->items[1].integer, -2);
    assert_int_equal(exti__json_get(root, "z")->items[2].count, 0);
    assert_true(exti__json_is(exti__json_get(exti__json_get(root, "a"), "b"), EXTI_JSON_NULL));
    assert_true(exti__json_boolean(root, "t", &yes));
    assert_true(yes);
    assert_true(exti__json_boolean(root, "f", &yes));
    assert_false(yes);
    assert_string_equal(exti__json_string(root, "s"), "x");
    assert_string_equal(exti__json_string(root, ""), "no name");
    assert_true(exti__json_is(exti__json_get(root, "r"), EXTI_JSON_REAL));
    assert_null(exti__json_get(root, "y"));
    assert_null(exti__json_get(NULL, "y"));
    assert_null(exti__json_get(exti__json_get(root, "z"), "y"));
    assert_null(exti__json_string(root, "t"));
    assert_false(exti__json_integer(root, "r", &n));
    assert_false(exti__json_boolean(root, "s", &yes));
    assert_int_equal(n, 7);
}

static void integers_have_64_bits(void **state)
{
    struct test *t = *state;

    must_read(t, "[0, -0, 9223372036854775807, -9223372036854775808]");
    assert_int_equal(root->items[0].integer, 0);
    assert_int_equal(root->items[1].integer, 0);
    assert_true(root->items[2].integer == INT64_MAX);
    assert_true(root->items[3].integer == INT64_MIN);
}

static void escapes_become_characters(void **state)
{
    struct test *t = *state;

    must_read(t, "[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\", \"\\u0041\\u00e9\\u20AC\\ud83d\\uDE00.\", "
                 "\"\xc3\xa9\\n\xe2\x82\xac\", \"\"]");
    assert_string_equal(root->items[0].text, "\"\\/\b\f\n\r\t");
    assert_string_equal(root->items[1].text, "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80.");
    assert_string_equal(root->items[2].text, "\xc3\xa9\n\xe2\x82\xac");
    assert_int_equal(root->items[2].count, 6);
    assert_string_equal(root->items[3].text, "");
}

static void what_is_not_json_is_refused_where_it_goes_wrong(void **state)
{
    static const struct {
        const char *text, *says;
        uint64_t offset;
    } cases[] = {
        {"", "line 1, column 1: the text ends before its value", 0},
        {" \n ", "line 2, column 2: the text ends", 3},
        {"{", "line 1, column 2: a member has no name", 1},
        {"{\"a\"", "no ':'", 4},
        {"{\"a\" 1}", "no ':'", 5},
        {"{\"a\":", "the text ends", 5},
        {"{\"a\":1", "no ',' or '}'", 6},
        {"{\"a\":1 \"b\":2}", "no ',' or '}'", 7},
        {"{\"a\":1,}", "no name in quotes", 7},
        {"{1:1}", "no name in quotes", 1},
        {"[1,]", "not a value", 3},
        {"[1 2]", "no ',' or ']'", 3},
        {"[1}", "no ',' or ']'", 2},
        {"[", "the text ends", 1},
        {"]", "not a value", 0},
        {"[] []", "something follows", 3},
        {"nul", "not a value", 0},
        {"True", "not a value", 0},
        {"01", "not a number", 0},
        {"-", "not a number", 0},
        {"1.", "not a number", 0},
        {".5", "not a value", 0},
        {"1e", "not a number", 0},
        {"[+1]", "not a value", 1},
        {"[9223372036854775808]", "too large", 1},
        {"[-9223372036854775809]", "too large", 1},
        {"[100000000000000000000000000000000000000000]", "too large", 1},
        {"\"abc", "does not end", 0},
        {"\"a\nb\"", "line 1, column 3: a string has a control character", 2},
        {"\"\\x\"", "unknown escape", 1},
        {"\"\\", "unknown escape", 1},
        {"\"\\u12g4\"", "hexadecimal", 1},
        {"\"\\u12", "hexadecimal", 1},
        {"\"\\u0000\"", "\\u0000 is not allowed", 1},
        {"\"\\ud800\"", "surrogate", 1},
        {"\"\\ud800\\u0041\"", "surrogate", 1},
        {"\"\\udc00\"", "surrogate", 1},
        {"\"\xff\"", "not UTF-8", 1},
        {"\"\xed\xa0\x80\"", "not UTF-8", 1},
        {"[\"\xc3\xa9\xc3\xa9\", x]", "line 1, column 8: not a value", 9},
        {"{\"a\": 1,\n \"b\": 2, \"a\": 3, \"b\": 4}", "line 2, column 10: the object has", 18},
        {"\xef\xbb\xbf{}", "not a value", 0},
    };
    struct test *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_exti(read_text(t, cases[i].text), EXTI_E_FORMAT, &t->err, cases[i].offset);
        assert_says(&t->err, cases[i].says);
        assert_null(root);
    }
    assert_exti(exti__json_read("[1]\0", 4, "is damaged: ", &root, &t->err), EXTI_E_FORMAT, &t->err,
                3);
    assert_says(&t->err, "is damaged: line 1, column 4: something follows");
}

/* What follows the last one is neither lost nor read. */
static void depth_is_limited(void **state)
{
    struct test *t = *state;
    char *text = test_alloc(t, 2000001);

    memset(text, '[', 64);
    memset(text + 64, ']', 64);
    must_read(t, text);
    memset(text, '[', 2000000);
    assert_exti(read_text(t, text), EXTI_E_FORMAT, &t->err, 64);
    assert_says(&t->err, "too many values within each other");
}

/* Looking for the second use of a name takes no square of their number. */
static void many_members_are_found(void **state)
{
    enum { COUNT = 200000 };
    struct test *t = *state;
    struct exti_json_writer w = exti__json_writer(EXTI_JSON_COMPACT);
    char *text = NULL, name[24];
    int64_t n;
    int rc;

    exti__json_open(&w, NULL, '{');
    for (int i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "%d", i);
        exti__json_put_integer(&w, name, i);
    }
    exti__json_close(&w, '{');
    assert_ok(exti__json_end(&w, &text, &t->err), &t->err);
    rc = exti__json_read(text, strlen(text), "", &root, &t->err);
    exti__free(text);
    assert_ok(rc, &t->err);
    for (int i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "%d", i);
        assert_true(exti__json_integer(root, name, &n));
        assert_int_equal(n, i);
    }
}

/* A text without memory for it is never called damaged: see exti__manifest_read. */
static void lack_of_memory_is_no_fault_of_the_text(void **state)
{
    static const char text[] =
        "{\"a\": [1, 2, {\"b\": \"\\u00e9\", \"c\": [[], {}]}], \"long\": [0, 1, 2, 3, 4, 5, 6, 7, "
        "8, "
        "9, 10, 11, 12, 13, 14, 15, 16, 17, 18], \"d\": {\"e\": {\"f\": true}}}";
    struct test *t = *state;
    int rc = EXTI_E_NOMEM;
    long n = 0;

    for (; rc; n++) {
        exti__mem_fail_after(n);
        rc = exti__json_read(text, strlen(text), "", &root, &t->err);
        exti__mem_fail_after(-1);
        if (rc)
            assert_exti(rc, EXTI_E_NOMEM, &t->err, EXTI_NO_OFFSET);
        assert_true(!rc == (root != NULL));
    }
    assert_true(n > 10);
    assert_int_equal(exti__json_count(exti__json_get(root, "long"), EXTI_JSON_ARRAY), 19);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        json_test(values_have_types_and_members),
        json_test(integers_have_64_bits),
        json_test(escapes_become_characters),
        json_test(what_is_not_json_is_refused_where_it_goes_wrong),
        json_test(depth_is_limited),
        json_test(many_members_are_found),
        json_test(lack_of_memory_is_no_fault_of_the_text),
    };

    return cmocka_run_group_tests_name("base/json_read", tests, NULL, NULL);
}
