#include "tests/support/exti_test.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "loader/rewrite/bind_set.h"
#include "tests/unit/macho/macho_toy.h"

/* The toy re-exports @loader_path/libr.dylib; if it has that name itself, the re-exports go round
 * in a circle. */
static const char *write_toy(struct test *t, const char *name)
{
    static struct macho_toy toy;
    const char *path = test_path(t, name);

    macho_toy_make(&toy, (struct macho_toy_opts){.arm = true});
    test_write(path, toy.b, toy.n);
    return path;
}

static void assert_count(struct test *t, const char *file, size_t count)
{
    struct exti_bind_set set;

    assert_ok(exti__bind_set_open(&set, file, &t->err), &t->err);
    assert_int_equal(set.count, count);
    for (size_t i = 0; i < count; i++)
        assert_true(set.spans[i].n > 0 && set.spans[i].p == set.files[i].p);
    exti__bind_set_close(&set);
    assert_null(set.files);
}

static void no_file_gives_an_empty_set(void **state)
{
    assert_count(*state, NULL, 0);
}

static void a_missing_reexported_library_is_skipped(void **state)
{
    assert_count(*state, write_toy(*state, "a.dylib"), 1);
}

static void each_reexported_library_is_in_the_set_once(void **state)
{
    const char *file = write_toy(*state, "a.dylib");

    write_toy(*state, "libr.dylib");
    assert_count(*state, file, 2);
}

static void bad_files_are_named(void **state)
{
    struct test *t = *state;
    const char *a = write_toy(t, "a.dylib"), *r = test_path(t, "libr.dylib");
    struct exti_bind_set set;

    assert_int_equal(exti__bind_set_open(&set, test_path(t, "none"), &t->err), EXTI_E_IO);
    assert_int_equal(t->err.os_error, ENOENT);
    assert_true(strstr(t->err.file, "none") != NULL);
    test_write(r, "text", 4);
    assert_int_equal(exti__bind_set_open(&set, a, &t->err), EXTI_E_FORMAT);
    assert_string_equal(t->err.file, r);
    test_write(r, "\xcf\xfa\xed\xfe", 4);
    assert_int_equal(exti__bind_set_open(&set, a, &t->err), EXTI_E_FORMAT);
    assert_string_equal(t->err.file, r);
    assert_int_equal(set.count, 0);
}

static void every_allocation_may_fail(void **state)
{
    struct test *t = *state;
    const char *file = write_toy(t, "a.dylib");
    struct exti_bind_set set;
    long n;
    int rc = EXTI_E_NOMEM;

    write_toy(t, "libr.dylib");
    for (n = 0; rc; n++) {
        exti__mem_fail_after(n);
        rc = exti__bind_set_open(&set, file, &t->err);
        exti__mem_fail_after(-1);
        if (rc)
            assert_int_equal(rc, EXTI_E_NOMEM);
    }
    assert_true(n > 10);
    assert_int_equal(set.count, 2);
    exti__bind_set_close(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(no_file_gives_an_empty_set),
        exti_test(a_missing_reexported_library_is_skipped),
        exti_test(each_reexported_library_is_in_the_set_once),
        exti_test(bad_files_are_named),
        exti_test(every_allocation_may_fail),
    };

    return cmocka_run_group_tests_name("bind_set", tests, NULL, NULL);
}
