/* What the process gets once.  Each case is a child process, since the locale is the process's. */
#include "tests/support/exti_test.h"

#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/process.h"
#include "runtime/system.h"

static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG", "PYTHONCOERCECLOCALE"};

/* What the environment says of each of these, and what is to come of it. */
struct locale_case {
    const char *set[4];
    bool utf8;            /* CPython's UTF-8 mode */
    const char *lc_ctype; /* in the environment, for children */
    const char *locale;
};

static bool same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool is_as_wanted(const struct locale_case *c)
{
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (c->set[i])
            setenv(names[i], c->set[i], 1);
        else
            unsetenv(names[i]);
    pyrt_process_setup(1);
    return !!pyrt_process_utf8() == c->utf8 && same(getenv("LC_CTYPE"), c->lc_ctype) &&
           same(setlocale(LC_CTYPE, NULL), c->locale);
}

static int status_of(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static void the_locale_is_taken_from_the_environment(void **state)
{
    static const struct locale_case cases[] = {
        /* PEP 538: coerced to UTF-8, for children too */
        {{NULL, NULL, NULL, NULL}, true, "C.UTF-8", "C.UTF-8"},
        {{"", "C", NULL, NULL}, true, "C.UTF-8", "C.UTF-8"},
        {{NULL, NULL, "POSIX", "1"}, true, "C.UTF-8", "C.UTF-8"},
        /* unless that is forbidden */
        {{"C", NULL, NULL, NULL}, true, NULL, "C"},
        {{NULL, "C", NULL, "0"}, true, "C", "C"},
        /* and nothing happens to others */
        {{"C.UTF-8", NULL, NULL, NULL}, false, NULL, "C.UTF-8"},
        {{NULL, "C.UTF-8", "C", NULL}, false, "C.UTF-8", "C.UTF-8"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        pid_t pid = fork();

        if (pid == 0)
            _exit(is_as_wanted(&cases[i]) ? 0 : 1);
        if (status_of(pid) != 0)
            fail_msg("case %zu", i);
    }
}

static bool blas_threads_are(int contexts, const char *before, const char *openblas,
                             const char *openmp)
{
    unsetenv("OPENBLAS_NUM_THREADS");
    unsetenv("OMP_NUM_THREADS");
    if (before)
        setenv("OMP_NUM_THREADS", before, 1);
    pyrt_process_setup(contexts);
    return same(getenv("OPENBLAS_NUM_THREADS"), openblas) &&
           same(getenv("OMP_NUM_THREADS"), openmp);
}

static void several_contexts_divide_the_processors(void **state)
{
    struct test *t = *state;
    const int n = pyrt_processors();
    const char *half = test_format(t, "%d", n > 2 ? n / 2 : 1);
    pid_t pid = fork();

    assert_true(n >= 1);
    if (pid == 0)
        _exit(!(blas_threads_are(1, NULL, NULL, NULL) && blas_threads_are(2, NULL, half, half) &&
                blas_threads_are(n + 1, NULL, "1", "1") && blas_threads_are(2, "77", half, "77")));
    assert_int_equal(status_of(pid), 0);
}

/* As a stock interpreter does, so that writing to a closed pipe is an error in Python. */
static void two_signals_are_ignored(void **state)
{
    pid_t pid = fork();

    (void)state;
    if (pid == 0) {
        signal(SIGPIPE, SIG_DFL);
        signal(SIGXFSZ, SIG_DFL);
        pyrt_process_setup(1);
        raise(SIGPIPE);
        raise(SIGXFSZ);
        _exit(7);
    }
    assert_int_equal(status_of(pid), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(the_locale_is_taken_from_the_environment),
        exti_test(several_contexts_divide_the_processors),
        exti_test(two_signals_are_ignored),
    };

    return cmocka_run_group_tests_name("runtime/process", tests, NULL, NULL);
}
