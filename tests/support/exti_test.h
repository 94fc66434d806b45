/* What the test programs share.  Uses the public API only, so any test can link it.
 *
 * A failed assertion jumps out of the test, so nothing that must be freed may be held by a local
 * alone: the fixture owns paths, file contents and outputs, and its folder goes with it. */
#ifndef TESTS_SUPPORT_EXTI_TEST_H
#define TESTS_SUPPORT_EXTI_TEST_H

/* cmocka 1.1 needs these four before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>

#include <extisolate.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof *(a))

/* As an offset: wherever. */
#define ANY_OFFSET (UINT64_MAX - 1)

/* `rc` is `code`; for a failure, *err says the same, names `offset` and has a message. */
#define assert_exti(rc, code, err, offset)                                                         \
    test_assert_exti((rc), (code), (err), (offset), #rc, __FILE__, __LINE__)
#define assert_ok(rc, err) assert_exti((rc), EXTI_OK, (err), ANY_OFFSET)
/* The message of *err contains `text`. */
#define assert_says(err, text) test_assert_contains((err)->message, (text), __FILE__, __LINE__)
#define assert_contains(whole, text) test_assert_contains((whole), (text), __FILE__, __LINE__)

/* Ends the test as skipped; the line printed is the reason that the runner shows. */
#define skip_because(...)                                                                          \
    do {                                                                                           \
        printf(__VA_ARGS__);                                                                       \
        printf("\n");                                                                              \
        fflush(stdout);                                                                            \
        skip();                                                                                    \
    } while (0)

void test_assert_exti(int rc, int code, const struct exti_error *err, uint64_t offset,
                      const char *call, const char *file, int line);
void test_assert_contains(const char *whole, const char *text, const char *file, int line);

/* Each test has one: cmocka_unit_test_setup_teardown(f, test_setup, test_teardown). */
struct test {
    char dir[256]; /* empty at first; removed with all that is in it */
    struct exti_error err;
    struct test_owned *owned;
};

int test_setup(void **state);
int test_teardown(void **state);
void test_end(struct test *t); /* frees it and all that it owns */

#define exti_test(f) cmocka_unit_test_setup_teardown(f, test_setup, test_teardown)

/* All that these return belongs to the fixture; all fail the test where they cannot succeed. */
void *test_alloc(struct test *t, size_t n); /* zeroed */
char *test_format(struct test *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *test_path(struct test *t, const char *name);            /* dir/name */
char *test_read(struct test *t, const char *path, size_t *n); /* NUL-terminated; n may be NULL */
void test_write(const char *path, const void *p, size_t n);
void test_copy(struct test *t, const char *from, const char *to); /* bytes and mode */

/* Names in `dir`, sorted, each followed by a newline. */
char *test_list(struct test *t, const char *dir);

/* Runs a program found on PATH to its end; the arguments end with NULL.  Gives its exit status, 128
 * plus the signal that ended it, or 127 where it is not installed.  *out, if asked for, is what it
 * wrote to standard output and standard error. */
int test_run(struct test *t, char **out, const char *program, ...) __attribute__((sentinel));
int test_runv(struct test *t, char **out, char *const argv[]);
/* As above, with a message and a failed test when the status is not 0; gives the output. */
char *test_must_run(struct test *t, const char *program, ...) __attribute__((sentinel));
bool test_have(const char *program);

#endif
