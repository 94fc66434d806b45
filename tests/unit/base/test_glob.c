#include "tests/support/exti_test.h"

#include <string.h>

#include "base/glob.h"

static void globs_match_like_a_shells(void **state)
{
    static const struct {
        const char *glob, *text;
        bool matches;
    } rows[] = {
        {"", "", true},
        {"", "a", false},
        {"a", "", false},
        {"*", "", true},
        {"*", "a/b", true},
        {"a*c", "abc", true},
        {"a*c", "ac", true},
        {"a*c", "abcb", false},
        {"a*b*c", "aXbXbXc", true},
        {"*.so.*", "libz.so.1", true},
        {"*.so.*", "libz.so", false},
        {"a?c", "abc", true},
        {"a?c", "ac", false},
        {"lib[alt]san.so", "libtsan.so", true},
        {"lib[alt]san.so", "libbsan.so", false},
        {"[a-c]x", "bx", true},
        {"[a-c]x", "dx", false},
        {"[!a-c]x", "dx", true},
        {"[!a-c]x", "ax", false},
        {"[]]", "]", true},
        {"*[0-9]", "lib12", true},
        {"[a", "[a", true},
        {"[a", "a", false},
        {"[", "[", true},
        {"a[", "a", false},
        {"**a", "bba", true},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (exti__glob_matches(rows[i].glob, rows[i].text, false) != rows[i].matches)
            fail_msg("\"%s\" and \"%s\"", rows[i].glob, rows[i].text);
}

/* A matcher that takes exponential time would not finish this test. */
static void many_stars_take_no_longer(void **state)
{
    char text[2001];

    (void)state;
    memset(text, 'a', 2000);
    text[2000] = 0;
    assert_false(exti__glob_matches("*a*a*a*a*a*a*a*a*a*a*a*a*b", text, false));
}

static void folding_ignores_case_and_kind_of_slash(void **state)
{
    static const struct {
        const char *glob, *text;
        bool matches, folded;
    } rows[] = {
        {"LIB*.dll", "libz.DLL", false, true}, {"a/b", "A\\b", false, true},
        {"[A-C]x", "bX", false, true},         {"[!a]x", "Ax", true, false},
        {"libz.dll", "libz.dll", true, true},  {"a?", "ab/", false, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (exti__glob_matches(rows[i].glob, rows[i].text, false) != rows[i].matches ||
            exti__glob_matches(rows[i].glob, rows[i].text, true) != rows[i].folded)
            fail_msg("\"%s\" and \"%s\"", rows[i].glob, rows[i].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(globs_match_like_a_shells),
        cmocka_unit_test(many_stars_take_no_longer),
        cmocka_unit_test(folding_ignores_case_and_kind_of_slash),
    };

    return cmocka_run_group_tests_name("base/glob", tests, NULL, NULL);
}
