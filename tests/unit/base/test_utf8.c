#include "tests/support/exti_test.h"

#include <string.h>

#include "base/utf8.h"

static void characters_have_one_spelling(void **state)
{
    static const struct {
        const char *text;
        size_t length;
    } cases[] = {
        {"", 0},
        {"a", 1},
        {"\x7f", 1},
        {"\x80", 0},
        {"\xc1\xbf", 0},
        {"\xc2\x80", 2},
        {"\xdf\xbf", 2},
        {"\xc2", 0},
        {"\xe0\x9f\xbf", 0},
        {"\xe0\xa0\x80", 3},
        {"\xed\x9f\xbf", 3},
        {"\xed\xa0\x80", 0},
        {"\xef\xbf\xbf", 3},
        {"\xe1\x80", 0},
        {"\xf0\x8f\xbf\xbf", 0},
        {"\xf0\x90\x80\x80", 4},
        {"\xf4\x8f\xbf\xbf", 4},
        {"\xf4\x90\x80\x80", 0},
        {"\xf5\x80\x80\x80", 0},
        {"\xff", 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(exti__utf8_length(cases[i].text, strlen(cases[i].text)), cases[i].length);
    assert_int_equal(exti__utf8_length("\xe0\xa0\x80", 2), 0);
}

static void texts_are_looked_at_as_a_whole(void **state)
{
    (void)state;
    assert_true(exti__utf8_is(""));
    assert_true(exti__utf8_is("Fa\xc3\xa7"
                              "ade"));
    assert_false(exti__utf8_is("Fa\xe7"
                               "ade"));
}

static void each_character_is_read_as_it_was_written(void **state)
{
    (void)state;
    for (uint32_t code = 1; code < 0x110000; code++) {
        char text[4];
        const size_t n = exti__utf8_put(text, code);
        const bool surrogate = code >= 0xd800 && code < 0xe000;

        assert_int_equal(exti__utf8_length(text, n), surrogate ? 0 : n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_have_one_spelling),
        cmocka_unit_test(texts_are_looked_at_as_a_whole),
        cmocka_unit_test(each_character_is_read_as_it_was_written),
    };

    return cmocka_run_group_tests_name("base/utf8", tests, NULL, NULL);
}
