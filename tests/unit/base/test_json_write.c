#include "tests/support/exti_test.h"

#include <string.h>

#include "base/json_write.h"
#include "base/mem.h"

/* Each kind of value, twice within another. */
static int write_all(enum exti_json_style style, char **out, struct exti_error *err)
{
    struct exti_json_writer w = exti__json_writer(style);

    exti__json_open(&w, NULL, '{');
    exti__json_put_string(&w, "text", "a\"\\/\b\f\n\r\t\x1f\x7f\xc3\xa9");
    exti__json_open(&w, "list", '[');
    exti__json_put_integer(&w, NULL, INT64_MIN);
    exti__json_open(&w, NULL, '{');
    exti__json_close(&w, '{');
    exti__json_open(&w, NULL, '[');
    exti__json_close(&w, '[');
    exti__json_put_boolean(&w, NULL, true);
    exti__json_close(&w, '[');
    exti__json_put_compact(&w, "inner", "{\"a\":[{},[],{\"b\\\\\":\"{:,\\\"}\"},1],\"c\":2}");
    exti__json_put_boolean(&w, "last", false);
    exti__json_close(&w, '{');
    return exti__json_end(&w, out, err);
}

static void texts_are_compact_or_indented(void **state)
{
    static const char *const expected[] = {
        [EXTI_JSON_COMPACT] =
            "{\"text\":\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u001F\x7f\xc3\xa9\",\"list\":"
            "[-9223372036854775808,{},[],true],\"inner\":{\"a\":[{},[],{\"b\\\\\":\"{:,\\\"}\"},1],"
            "\"c\":2},\"last\":false}",
        [EXTI_JSON_INDENTED] =
            "{\n  \"text\": \"a\\\"\\\\/\\b\\f\\n\\r\\t\\u001F\x7f\xc3\xa9\",\n  \"list\": [\n"
            "    -9223372036854775808,\n    {},\n    [],\n    true\n  ],\n  \"inner\": {\n"
            "    \"a\": [\n      {},\n      [],\n      {\n        \"b\\\\\": \"{:,\\\"}\"\n      "
            "},\n"
            "      1\n    ],\n    \"c\": 2\n  },\n  \"last\": false\n}",
    };
    static const enum exti_json_style styles[] = {EXTI_JSON_COMPACT, EXTI_JSON_INDENTED};
    struct test *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(styles); i++) {
        char *text = NULL;

        assert_ok(write_all(styles[i], &text, &t->err), &t->err);
        assert_string_equal(text, expected[styles[i]]);
        exti__free(text);
    }
}

static void what_is_read_is_written_again(void **state)
{
    static const char text[] =
        "{\"b\":[1,-2.50E+7,null,true,false,\"x\\ty\"],\"a\":{\"d\":{},\"c\":[]}}";
    static const char sorted[] =
        "{\"a\":{\"c\":[],\"d\":{}},\"b\":[1,-2.50E+7,null,true,false,\"x\\ty\"]}";
    struct test *t = *state;
    struct exti_json *v;
    char *out = NULL;

    assert_ok(exti__json_read(text, strlen(text), "", &v, &t->err), &t->err);
    assert_ok(exti__json_text(v, EXTI_JSON_COMPACT, &out, &t->err), &t->err);
    assert_string_equal(out, text);
    exti__free(out);
    assert_ok(exti__json_text(v, EXTI_JSON_SORTED, &out, &t->err), &t->err);
    assert_string_equal(out, sorted);
    exti__free(out);
    exti__json_free(v);
}

static void a_text_is_complete_or_missing(void **state)
{
    struct test *t = *state;
    char *whole = NULL;

    assert_ok(write_all(EXTI_JSON_INDENTED, &whole, &t->err), &t->err);
    for (int rc = EXTI_E_NOMEM, n = 0; rc; n++) {
        char *text = NULL;

        exti__mem_fail_after(n);
        rc = write_all(EXTI_JSON_INDENTED, &text, &t->err);
        exti__mem_fail_after(-1);
        if (rc)
            assert_exti(rc, EXTI_E_NOMEM, &t->err, EXTI_NO_OFFSET);
        else
            assert_string_equal(text, whole);
        assert_true(rc || n > 1);
        assert_true(!rc || !text);
        exti__free(text);
    }
    exti__free(whole);
}

static void other_encodings_are_refused(void **state)
{
    struct test *t = *state;
    struct exti_json_writer w = exti__json_writer(EXTI_JSON_COMPACT);
    char *text = NULL;

    exti__json_put_string(&w, NULL,
                          "Fa\xe7"
                          "ade");
    assert_exti(exti__json_end(&w, &text, &t->err), EXTI_E_UNSUPPORTED, &t->err, EXTI_NO_OFFSET);
    assert_says(&t->err, "not UTF-8");
    assert_null(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(texts_are_compact_or_indented),
        exti_test(what_is_read_is_written_again),
        exti_test(a_text_is_complete_or_missing),
        exti_test(other_encodings_are_refused),
    };

    return cmocka_run_group_tests_name("base/json_write", tests, NULL, NULL);
}
