/* Asking an interpreter what it is.  Shell scripts stand for interpreters that give odd answers. */
#include "tests/support/interrupt_calls.h"

#include "tests/support/exti_test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/python.h"

/* An interpreter that runs these lines of shell. */
static char *make_script(struct test *t, const char *name, const char *lines)
{
    char *path = test_path(t, name), *text = test_format(t, "#!/bin/sh\n%s\n", lines);

    test_write(path, text, strlen(text));
    assert_int_equal(chmod(path, 0755), 0);
    return path;
}

/* What a stock interpreter answers, but for the words of `other`, which come first and count. */
static char *make_answer(struct test *t, const char *other)
{
    return make_script(t, "python",
                       test_format(t,
                                   "printf '%%s\\0' %s implementation=cpython major=3 minor=11 "
                                   "version=3.11.2 executable=/bin/py free_threaded= debug= "
                                   "soname=libpython3.11.so.1 libpython=/lib/py.so",
                                   other));
}

static void want_refusal(struct test *t, const char *exe, const char *said)
{
    struct pyrt_install in = {.minor = 77};

    assert_exti(pyrt_install_find(&in, exe, &t->err), EXTI_E_ARG, &t->err, EXTI_NO_OFFSET);
    assert_says(&t->err, said);
    assert_null(strstr(t->err.message, "--python")); /* of the program, which says so itself */
    assert_int_equal(in.minor, 77);
}

static void the_answer_is_taken(void **state)
{
    struct test *t = *state;
    struct pyrt_install in;

    assert_ok(pyrt_install_find(&in, make_answer(t, ""), &t->err), &t->err);
    assert_int_equal(in.minor, 11);
    assert_false(in.free_threaded || in.debug);
    assert_string_equal(in.version, "3.11.2");
    assert_string_equal(in.executable, "/bin/py");
    assert_string_equal(in.libpython, "/lib/py.so");
    pyrt_install_free(&in);
    assert_null(in.version);
    assert_ok(pyrt_install_find(&in, make_answer(t, "free_threaded=1 debug=1"), &t->err), &t->err);
    assert_true(in.free_threaded && in.debug);
    pyrt_install_free(&in);
}

static void python3_is_looked_up_where_none_is_named(void **state)
{
    struct test *t = *state;
    char *before = test_format(t, "%s", getenv("PATH"));
    struct pyrt_install in;
    int rc;

    rename(make_answer(t, "minor=13"), test_path(t, "python3"));
    setenv("PATH", test_format(t, "%s:%s", t->dir, before), 1);
    rc = pyrt_install_find(&in, NULL, &t->err);
    setenv("PATH", before, 1);
    assert_ok(rc, &t->err);
    assert_int_equal(in.minor, 13);
    pyrt_install_free(&in);
}

static void interpreters_that_cannot_run_in_contexts_are_refused(void **state)
{
    struct test *t = *state;

    want_refusal(t, make_answer(t, "implementation=pypy"),
                 "is pypy 3.11.2; contexts need a CPython");
    want_refusal(t, make_answer(t, "major=2 version=2.7.18"),
                 "is CPython 2.7.18; contexts need 3.9 or later");
    want_refusal(t, make_answer(t, "minor=8"), "contexts need 3.9 or later");
    want_refusal(t, make_answer(t, "libpython="), "no shared library libpython3.11.so.1");
    want_refusal(t, make_answer(t, "executable="), "does not know its own path");
}

static void what_is_no_interpreter_is_refused(void **state)
{
    static const char *const others[] = {
        "exit 3", "kill -9 $$", "echo '{}'", "echo implementation", "printf 'implementation=\\0'",
        "",       "exec yes"};
    struct test *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        want_refusal(t, make_script(t, "python", others[i]), "did not describe itself");
    want_refusal(t, make_script(t, "python", "printf 'implementation=x\\0'"),
                 "is x ; contexts need a CPython");
    /* The answer of a program that then fails does not count. */
    want_refusal(t, make_script(t, "python", "printf 'implementation=cpython\\0'; exit 1"),
                 "did not describe itself");
}

/* An answer that is cut off has no NUL at its end, and a path may hold what ends a key. */
static void values_are_whatever_lies_between(void **state)
{
    struct test *t = *state;
    struct pyrt_install in;

    assert_ok(
        pyrt_install_find(&in, make_answer(t, "'executable=/a=b\nc' 'x executable=/no'"), &t->err),
        &t->err);
    assert_string_equal(in.executable, "/a=b\nc");
    pyrt_install_free(&in);
    assert_ok(
        pyrt_install_find(&in,
                          make_script(t, "python",
                                      "printf 'implementation=cpython\\0major=3\\0minor=11\\0'"
                                      "'executable=/py\\0libpython=/lib/py.so'"),
                          &t->err),
        &t->err);
    assert_string_equal(in.libpython, "/lib/py.so");
    pyrt_install_free(&in);
}

static void a_program_that_cannot_be_run_is_named(void **state)
{
    struct test *t = *state;
    struct pyrt_install in;

    if (test_under_valgrind() || test_is_emulated())
        skip_because("posix_spawn succeeds where vfork is fork");
    assert_int_equal(pyrt_install_find(&in, "/no/such/python", &t->err), EXTI_E_IO);
    assert_int_equal(t->err.os_error, ENOENT);
    assert_string_equal(t->err.file, "/no/such/python");
    assert_says(&t->err, "the interpreter cannot be run");
    assert_int_equal(pyrt_install_find(&in, t->dir, &t->err), EXTI_E_IO);
    assert_int_equal(t->err.os_error, EACCES);
}

static void a_full_table_of_files_is_an_error(void **state)
{
    struct test *t = *state;
    struct rlimit was, few;
    struct pyrt_install in;
    char *exe = make_answer(t, "");
    int fd = dup(0), rc;

    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    few = (struct rlimit){(rlim_t)fd, was.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    rc = pyrt_install_find(&in, exe, &t->err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    assert_int_equal(rc, EXTI_E_IO);
    assert_int_equal(t->err.os_error, EMFILE);
}

static void signals_do_not_disturb_the_answer(void **state)
{
    struct test *t = *state;
    struct pyrt_install in;

    interrupts.read = interrupts.waitpid = 1;
    assert_ok(pyrt_install_find(&in, make_answer(t, "debug=1"), &t->err), &t->err);
    assert_int_equal(interrupts.read, 0);
    assert_int_equal(interrupts.waitpid, 0);
    assert_true(in.debug);
    assert_string_equal(in.version, "3.11.2");
    pyrt_install_free(&in);
    assert_ok(pyrt_install_find(&in, make_answer(t, "free_threaded=1"), &t->err), &t->err);
    assert_true(in.free_threaded);
    pyrt_install_free(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(the_answer_is_taken),
        exti_test(python3_is_looked_up_where_none_is_named),
        exti_test(interpreters_that_cannot_run_in_contexts_are_refused),
        exti_test(what_is_no_interpreter_is_refused),
        exti_test(values_are_whatever_lies_between),
        exti_test(a_program_that_cannot_be_run_is_named),
        exti_test(a_full_table_of_files_is_an_error),
        exti_test(signals_do_not_disturb_the_answer),
    };

    return cmocka_run_group_tests_name("runtime/install", tests, NULL, NULL);
}
