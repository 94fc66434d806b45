/* Helpers of the test programs.  They use only the public API, so any test can link them.
 *
 * A failed assertion jumps out of the test, so a local variable must not be the only owner of
 * anything that must be freed.  The fixture owns paths, file contents and outputs, and removes its
 * folder. */
#ifndef TESTS_SUPPORT_EXTI_TEST_H
#define TESTS_SUPPORT_EXTI_TEST_H

/* cmocka 1.1 needs these four before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* cmocka 2 warns of the name that cmocka 1 has, and its assert_uint_in_range casts to a signed
 * type. */
#ifdef assert_int_in_range
#undef assert_in_range
#define assert_in_range assert_int_in_range
#endif

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

#include <extisolate.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof *(a))

/* Accepts any offset. */
#define ANY_OFFSET (UINT64_MAX - 1)

/* Asserts that `rc` is `code`.  For a failure, *err must have the same code, the offset and a
 * message. */
#define assert_exti(rc, code, err, offset)                                                         \
    test_assert_exti((rc), (code), (err), (offset), #rc, __FILE__, __LINE__)
#define assert_ok(rc, err) assert_exti((rc), EXTI_OK, (err), ANY_OFFSET)
/* Asserts that the message of *err contains `text`. */
#define assert_says(err, text) test_assert_contains((err)->message, (text), __FILE__, __LINE__)
#define assert_contains(whole, text) test_assert_contains((whole), (text), __FILE__, __LINE__)

/* Ends the test as skipped and prints the reason, which the runner shows. */
#define skip_because(...)                                                                          \
    do {                                                                                           \
        printf(__VA_ARGS__);                                                                       \
        printf("\n");                                                                              \
        fflush(stdout);                                                                            \
        skip();                                                                                    \
    } while (0)

/* Whether valgrind runs this program, on a processor and with signal masks of its own. */
bool test_under_valgrind(void);
/* Whether qemu-user runs it, which makes up what /proc tells: EXTI_EMULATED is set then. */
bool test_is_emulated(void);

void test_assert_exti(int rc, int code, const struct exti_error *err, uint64_t offset,
                      const char *call, const char *file, int line);
void test_assert_contains(const char *whole, const char *text, const char *file, int line);

/* Each test has one: cmocka_unit_test_setup_teardown(f, test_setup, test_teardown). */
struct test {
    char dir[256]; /* empty at first; removed with its contents */
    struct exti_error err;
    struct test_owned *owned;
};

int test_setup(void **state);
int test_teardown(void **state);
void test_end(struct test *t); /* frees the fixture and everything it owns */

#define exti_test(f) cmocka_unit_test_setup_teardown(f, test_setup, test_teardown)

/* The fixture owns everything that these return.  On any error they fail the test. */
void *test_alloc(struct test *t, size_t n); /* zeroed */
char *test_format(struct test *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *test_path(struct test *t, const char *name);            /* dir/name */
char *test_read(struct test *t, const char *path, size_t *n); /* NUL-terminated; n may be NULL */
void test_write(const char *path, const void *p, size_t n);
void test_copy(struct test *t, const char *from, const char *to); /* bytes and mode */

/* Names in `dir`, sorted, each followed by a newline. */
char *test_list(struct test *t, const char *dir);

/* Runs a program found on PATH to its end; the arguments end with NULL.  Returns its exit status,
 * 128 plus the signal that ended it, or 127 if it is not installed.  *out (`out` may be NULL) gets
 * its standard output and standard error. */
int test_run(struct test *t, char **out, const char *program, ...) __attribute__((sentinel));

/* Builds the inputs of a group by its build.sh, and gives the absolute path of the folder. */
void test_build_inputs(struct test *t, const char *group, char folder[PATH_MAX]);
int test_runv(struct test *t, char **out, char *const argv[]);
/* Runs a program, fails the test unless the status is 0, and returns the output. */
char *test_must_run(struct test *t, const char *program, ...) __attribute__((sentinel));
bool test_have(const char *program);

/* Ends the program after that many seconds, unless it is called with 0 before: for a loop that
 * might not end. */
void test_time_limit(unsigned seconds);

#endif
