/* A source that is replaced between two looks of exti_dir_verify, each time. */
#include "tests/support/fail_calls.h"

#include "tests/support/exti_test.h"

#include <unistd.h>

#include "tests/isolation/iso.h"

/* Two versions of a source.  Who looks it up gets the one that was copied, and who opens it the
 * other, as who looks it up after that does, once. */
static struct {
    const char *path, *other;
    bool replaced, was_opened;
    int opened;
} source;

static void have(bool replaced)
{
    if (source.replaced == replaced)
        return;
    source.replaced = replaced;
    if (renameat2(AT_FDCWD, source.path, AT_FDCWD, source.other, RENAME_EXCHANGE) != 0)
        abort();
}

static void replace_source(const char *path, bool is_stat)
{
    if (strcmp(path, source.path) != 0)
        return;
    have(!is_stat || source.was_opened);
    source.was_opened = !is_stat;
    source.opened += !is_stat;
}

/* Copies `path` into a new context's directory. */
static void make_dir(struct test *t, const char *path)
{
    struct exti_ctx_opts opts = iso_opts(test_path(t, "ctx"), NULL);
    struct exti_ctx *ctx = NULL;
    const char *copy;

    opts.api_library = toy("libtoy.so.1");
    assert_ok(exti_ctx_open(&ctx, &opts, &t->err), &t->err);
    assert_ok(exti_copy(ctx, path, &copy, &t->err), &t->err);
    assert_ok(exti_ctx_close(ctx, &t->err), &t->err);
}

static int want_changed(void *user, const struct exti_error *finding)
{
    struct test *t = user;

    t->err = *finding;
    assert_says(&t->err, "its source has changed since");
    return 1; /* other checks find that it keeps changing */
}

/* Its copy differs from what the new version makes, but is that of the old one. */
static void the_copy_of_a_replaced_source_is_called_stale(void **state)
{
    struct test *t = *state;
    char *path = test_path(t, "ext_a.so"), *other = test_path(t, "other.so"), *bytes;
    size_t n, findings = 0;

    bytes = test_read(t, toy("ext_a.so"), &n);
    test_write(path, bytes, n);
    make_dir(t, path);
    *(char *)memmem(bytes, n, "GCC: (", 6) = 'g';
    test_write(other, bytes, n);
    source.path = path;
    source.other = other;
    fail_calls.before = replace_source;
    assert_ok(exti_dir_verify(test_path(t, "ctx"), want_changed, t, &findings, &t->err), &t->err);
    fail_calls.before = NULL;
    assert_true(source.opened > 0);
    assert_int_equal(findings, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(the_copy_of_a_replaced_source_is_called_stale),
    };

    return cmocka_run_group_tests_name("unit/verify_replaced", tests, NULL, NULL);
}
