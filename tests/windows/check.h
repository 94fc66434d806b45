/* Reports results of the Windows test programs in the form that tests/run.sh reads. */
#ifndef TESTS_WINDOWS_CHECK_H
#define TESTS_WINDOWS_CHECK_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <extisolate.h>

static bool check_failed;

/* Evaluates to `condition`, so that a test can stop when continuing makes no sense. */
#define CHECK(condition) check_that((condition), #condition, __FILE__, __LINE__, NULL)
#define CHECK_ERR(condition, err) check_that((condition), #condition, __FILE__, __LINE__, (err))

static inline bool check_that(bool holds, const char *text, const char *file, int line,
                              const struct exti_error *err)
{
    if (holds)
        return true;
    check_failed = true;
    printf("# %s:%d: %s\n", file, line, text);
    if (err)
        printf("#   %s, os_error %d, '%s': %s\n", exti_code_name(err->code), err->os_error,
               err->file, err->message);
    return false;
}

#define RUN(test) check_run(#test, test)
static inline void check_run(const char *name, void (*test)(void))
{
    clock_t start = clock();

    check_failed = false;
    test();
    printf("# %s: %ld ms\n", name, (long)((clock() - start) * 1000 / CLOCKS_PER_SEC));
    printf("%s %s\n", check_failed ? "not ok" : "ok", name);
    fflush(stdout);
}

#endif
