#include "tests/support/exti_test.h"

#include <string.h>

#include "runtime/command.h"

static struct pyrt_install python = {.executable = (char *)"/usr/bin/python3"};
static char *arguments[] = {(char *)"a", (char *)"-c"};

static struct pyrt_command command_of(enum pyrt_program_kind kind, const char *what)
{
    const struct pyrt_program program = {.kind = kind, .what = what, .argv = arguments, .argc = 2};
    struct pyrt_command c;
    struct exti_error err;

    assert_ok(pyrt_command_new(&c, &python, &program, &err), &err);
    return c;
}

/* Joins with spaces. */
static void assert_words(const char *const *words, size_t count, const char *want)
{
    char got[256] = "";

    for (size_t i = 0; i < count; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s", i ? " " : "", words[i]);
    assert_string_equal(got, want);
}

static void a_script_is_argument_zero(void **state)
{
    struct pyrt_command c = command_of(PYRT_SCRIPT, "dir/app.py");

    (void)state;
    assert_words(c.words, c.word_count, "/usr/bin/python3 dir/app.py a -c");
    assert_words(c.argv, c.argc, "dir/app.py a -c");
    pyrt_command_free(&c);
    assert_null(c.words);
}

static void code_is_not_among_the_arguments(void **state)
{
    struct pyrt_command c = command_of(PYRT_CODE, "pass");

    (void)state;
    assert_words(c.words, c.word_count, "/usr/bin/python3 -c pass a -c");
    assert_words(c.argv, c.argc, "-c a -c");
    pyrt_command_free(&c);
}

static void a_module_is_found_by_the_interpreter_later(void **state)
{
    struct pyrt_command c = command_of(PYRT_MODULE, "pkg.mod");

    (void)state;
    assert_words(c.words, c.word_count, "/usr/bin/python3 -m pkg.mod a -c");
    assert_words(c.argv, c.argc, "-m a -c");
    pyrt_command_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_script_is_argument_zero),
        cmocka_unit_test(code_is_not_among_the_arguments),
        cmocka_unit_test(a_module_is_found_by_the_interpreter_later),
    };

    return cmocka_run_group_tests_name("runtime/command", tests, NULL, NULL);
}
