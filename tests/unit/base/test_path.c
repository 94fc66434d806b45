#include "tests/support/exti_test.h"

#include "base/mem.h"
#include "base/path.h"

static void join_puts_one_slash(void **state)
{
    static const char *const cases[][3] = {
        {"/a", "b", "/a/b"}, {"/a/", "b", "/a/b"}, {"/", "b", "/b"},
        {"", "b", "b"},      {".", "b", "./b"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char *path = exti__path_join(cases[i][0], cases[i][1]);

        assert_string_equal(path, cases[i][2]);
        exti__free(path);
    }
}

static void base_name_is_the_part_behind_the_last_slash(void **state)
{
    static const char *const cases[][2] = {
        {"/a/b", "b"}, {"b", "b"}, {"a/b.so.1", "b.so.1"}, {"/a/", ""}, {"/", ""}, {"", ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_string_equal(exti__base_name(cases[i][0]), cases[i][1]);
}

static void last_slash_is_null_without_one(void **state)
{
    const char *path = "/a/b/c";

    (void)state;
    assert_ptr_equal(exti__path_last_slash(path), path + 4);
    assert_null(exti__path_last_slash("abc"));
    assert_null(exti__path_last_slash(""));
}

static void only_a_leading_slash_makes_a_path_absolute(void **state)
{
    (void)state;
    assert_true(exti__path_is_absolute("/"));
    assert_true(exti__path_is_absolute("/a/b"));
    assert_false(exti__path_is_absolute("a/b"));
    assert_false(exti__path_is_absolute(""));
}

static void plain_name_has_no_folder(void **state)
{
    (void)state;
    assert_true(exti__path_is_plain_name("a.so"));
    assert_false(exti__path_is_plain_name("d/a.so"));
    assert_false(exti__path_is_plain_name("a.so/"));
    assert_false(exti__path_is_plain_name(""));
}

static void path_is_below_only_its_own_folders(void **state)
{
    static const struct {
        const char *path, *dir;
        bool below;
    } cases[] = {
        {"/a/b", "/a", true}, {"/a/b/c", "/a", true}, {"/a/", "/a", true},   {"/a", "/a", false},
        {"/ab", "/a", false}, {"/a", "/a/b", false},  {"/b/a", "/a", false}, {"a/b", "a", true},
        {"/x", "", true}, /* the root, without its separator */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (exti__path_is_below(cases[i].path, cases[i].dir) != cases[i].below)
            fail_msg("\"%s\" and \"%s\"", cases[i].path, cases[i].dir);
}

static void join_gives_null_without_memory(void **state)
{
    (void)state;
    exti__mem_fail_after(0);
    assert_null(exti__path_join("/a", "b"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(join_puts_one_slash),
        cmocka_unit_test(join_gives_null_without_memory),
        cmocka_unit_test(base_name_is_the_part_behind_the_last_slash),
        cmocka_unit_test(last_slash_is_null_without_one),
        cmocka_unit_test(only_a_leading_slash_makes_a_path_absolute),
        cmocka_unit_test(plain_name_has_no_folder),
        cmocka_unit_test(path_is_below_only_its_own_folders),
    };

    return cmocka_run_group_tests_name("base/path", tests, NULL, NULL);
}
