/* Each allocation in turn fails: every call reports that, leaks nothing, leaves no partial file,
 * and works when it is tried again.  EXTI_STEP=3 lets every third allocation fail. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <string.h>

#include "base/mem.h"
#include "tests/isolation/iso.h"

/* Whether an allocation has failed since exti__mem_fail_after(n).  Ends the failing. */
static bool has_failed(long n)
{
    bool waiting = false;

    while (n-- >= 0 && !waiting) {
        void *p = exti__alloc(1);

        waiting = !p;
        exti__free(p);
    }
    exti__mem_fail_after(-1);
    return !waiting;
}

static long step(void)
{
    const char *text = getenv("EXTI_STEP");
    const long n = text ? atol(text) : 1;

    want(n > 0);
    return n;
}

static long failing_allocation;

/* Calls `once` with the n-th allocation failing, for each n, until no allocation has failed. */
static void fail_each_allocation(struct test *t, int (*once)(struct test *t))
{
    long n = 0, unharmed = 0;
    bool failed = true;

    for (; failed; n += step()) {
        int rc;

        assert_true(n < 100000);
        t->err = (struct exti_error){0};
        failing_allocation = n;
        exti__mem_fail_after(n);
        rc = once(t);
        failed = has_failed(n);
        if (rc)
            assert_exti(rc, EXTI_E_NOMEM, &t->err, EXTI_NO_OFFSET);
        unharmed += failed && !rc;
    }
    print_message("%ld allocations, %ld of which the call could do without\n", n - step(),
                  unharmed);
    assert_true(n > 1);
}

static int inspect_once(struct test *t)
{
    struct exti_image *im;
    int rc = exti_inspect(toy("ext_cxx.so"), &im, &t->err);

    if (!rc)
        exti_image_free(im);
    return rc;
}

static void inspect_survives(void **state)
{
    fail_each_allocation(*state, inspect_once);
}

static int rewrite_once(struct test *t)
{
    const struct exti_needed needed[] = {{NULL, "libtoy.so.k3x9q2m4", EXTI_NEEDED_FIRST},
                                         {"libtoydep.so", "libother.so", EXTI_NEEDED_LAST}};
    const struct exti_rename renames[] = {{"toy_next", "uNy_next"}};
    struct exti_rewrite_opts opts = {.size = sizeof opts, .id = "a-new-name-for-it.so"};
    char dst[300];
    int rc;

    snprintf(dst, sizeof dst, "%s/x.so", t->dir);
    unlink(dst);
    opts.needed = needed;
    opts.needed_count = 2;
    opts.renames = renames;
    opts.rename_count = 1;
    opts.path_prepend = "$ORIGIN/lib";
    opts.origin = "/o";
    opts.flags = EXTI_RW_SYMBOLIC | EXTI_RW_CLEAR_UNIQUE | EXTI_RW_CLEAR_NODELETE;
    rc = exti_rewrite(toy("ext_dep.so"), dst, &opts, &t->err);
    assert_int_equal(file_exists(dst), rc == 0);
    return rc;
}

static void rewrite_survives(void **state)
{
    struct test *t = *state;

    fail_each_allocation(t, rewrite_once);
    assert_string_equal(test_list(t, t->dir), "x.so\n");
}

static int verify_once(struct test *t)
{
    char copy[300];
    size_t n;

    snprintf(copy, sizeof copy, "%s/x.so", t->dir);
    return exti_verify(copy, toy("ext_dep.so"), NULL, NULL, &n, &t->err);
}

static void verify_survives(void **state)
{
    struct test *t = *state;

    assert_int_equal(rewrite_once(t), 0);
    fail_each_allocation(t, verify_once);
}

static uint32_t ctx_flags;
static bool ctx_reused; /* continue in the directory that the last failure left */

/* Opens a directory and copies two files into it.  The directory must be usable after a failure. */
static int copy_once(struct test *t)
{
    const struct exti_redirect redirect = {"no_such_function", t};
    char dir[300];
    struct exti_ctx_opts opts;
    struct exti_ctx *ctx = NULL;
    int rc, close_rc;

    snprintf(dir, sizeof dir, "%s/ctx", t->dir);
    if (!ctx_reused)
        assert_int_equal(system(iso_text("rm -rf '%s'", dir)), 0);
    opts = iso_opts(dir, NULL);
    opts.flags = ctx_flags;
    opts.redirects = &redirect;
    opts.redirect_count = 1;
    rc = exti_ctx_open(&ctx, &opts, &t->err);
    if (rc) {
        assert_null(ctx);
        return rc;
    }
    rc = exti_copy(ctx, toy("ext_a.so"), NULL, &t->err);
    if (!rc)
        rc = exti_copy(ctx, toy("ext_cxx.so"), NULL, &t->err);
    close_rc = exti_ctx_close(ctx, rc ? NULL : &t->err);
    return rc ? rc : close_rc;
}

static void assert_two_copies(struct test *t)
{
    char dir[300];
    size_t findings = 9;
    struct exti_dir *d;

    snprintf(dir, sizeof dir, "%s/ctx", t->dir);
    assert_ok(exti_dir_verify(dir, iso_print_finding, NULL, &findings, &t->err), &t->err);
    assert_int_equal(findings, 0);
    assert_ok(exti_dir_read(dir, &d, &t->err), &t->err);
    assert_int_equal(exti_dir_count(d), 3);
    exti_dir_free(d);
}

static void copying_survives(void **state)
{
    struct test *t = *state;

    fail_each_allocation(t, copy_once);
    assert_two_copies(t);
}

static void copying_goes_on_after_failures(void **state)
{
    struct test *t = *state;

    ctx_reused = true;
    fail_each_allocation(t, copy_once);
    ctx_reused = false;
    assert_two_copies(t);
}

static void copying_with_private_names_survives(void **state)
{
    struct test *t = *state;

    ctx_flags = EXTI_CTX_RENAME;
    fail_each_allocation(t, copy_once);
    ctx_flags = 0;
    assert_two_copies(t);
}

static int no_more(void *user, const struct exti_library_info *library)
{
    (void)user;
    return library->users == 0;
}

static int copy_many_once(struct test *t)
{
    const char *const originals[] = {toy("ext_a.so"), toy("ext_cxx.so")};
    const struct exti_copy_opts many = {.size = sizeof many, .threads = 1};
    struct exti_ctx_opts opts;
    struct exti_ctx *ctx = NULL;
    char dir[300];
    int rc, close_rc;

    snprintf(dir, sizeof dir, "%s/ctx", t->dir);
    if (!ctx_reused)
        assert_int_equal(system(iso_text("rm -rf '%s'", dir)), 0);
    opts = iso_opts(dir, NULL);
    rc = exti_ctx_open(&ctx, &opts, &t->err);
    if (rc)
        return rc;
    rc = exti_copy_many(ctx, originals, 2, &many, &t->err);
    if (!rc)
        rc = exti_ctx_libraries(ctx, no_more, NULL, &t->err);
    close_rc = exti_ctx_close(ctx, rc ? NULL : &t->err);
    return rc ? rc : close_rc;
}

static void copying_many_survives(void **state)
{
    struct test *t = *state;

    fail_each_allocation(t, copy_many_once);
    assert_two_copies(t);
    assert_int_equal(system(iso_text("rm -rf '%s/ctx'", t->dir)), 0);
    ctx_reused = true;
    fail_each_allocation(t, copy_many_once);
    ctx_reused = false;
    assert_two_copies(t);
}

static int verify_dir_once(struct test *t)
{
    char dir[300];
    size_t findings;

    snprintf(dir, sizeof dir, "%s/ctx", t->dir);
    return exti_dir_verify(dir, NULL, NULL, &findings, &t->err);
}

/* The call may report the lack of memory as findings, and must not fail with another error. */
static void directory_checks_survive(void **state)
{
    struct test *t = *state;

    assert_int_equal(copy_once(t), 0);
    fail_each_allocation(t, verify_dir_once);
}

static int copy_privately_once(struct test *t)
{
    struct exti_ctx_opts opts = iso_opts(NULL, NULL);
    struct exti_ctx *ctx = NULL;
    int rc = exti_ctx_open(&ctx, &opts, &t->err), close_rc;

    if (rc)
        return rc;
    rc = exti_copy(ctx, toy("ext_dep.so"), NULL, &t->err);
    close_rc = exti_ctx_close(ctx, rc ? NULL : &t->err);
    return rc ? rc : close_rc;
}

static void copying_privately_leaves_nothing(void **state)
{
    struct test *t = *state;

    fail_each_allocation(t, copy_privately_once);
    assert_string_equal(test_list(t, t->dir), "");
}

static int setup_private(void **state)
{
    int rc = test_setup(state);

    if (rc)
        return rc;
    return setenv("TMPDIR", test_path(*state, ""), 1);
}

static int teardown_private(void **state)
{
    unsetenv("TMPDIR");
    exti__mem_fail_after(-1);
    return test_teardown(state);
}

/* A copy of a copy is made from the original, which the first one's manifest names. */
static int copy_a_copy_once(struct test *t)
{
    char one[300], two[300];
    struct exti_ctx_opts opts;
    struct exti_ctx *ctx = NULL;
    const char *copy = NULL;
    int rc, close_rc;

    exti__mem_fail_after(-1);
    snprintf(one, sizeof one, "%s/one", t->dir);
    snprintf(two, sizeof two, "%s/two", t->dir);
    assert_int_equal(system(iso_text("rm -rf '%s' '%s'", one, two)), 0);
    opts = iso_opts(one, NULL);
    assert_ok(exti_ctx_open(&ctx, &opts, &t->err), &t->err);
    assert_ok(exti_copy(ctx, toy("ext_a.so"), &copy, &t->err), &t->err);
    snprintf(one, sizeof one, "%s", copy);
    assert_ok(exti_ctx_close(ctx, &t->err), &t->err);
    opts = iso_opts(two, NULL);
    assert_ok(exti_ctx_open(&ctx, &opts, &t->err), &t->err);
    exti__mem_fail_after(failing_allocation);
    rc = exti_copy(ctx, one, NULL, &t->err);
    close_rc = exti_ctx_close(ctx, rc ? NULL : &t->err);
    if (!rc && !close_rc)
        assert_null(strstr(test_read(t, test_path(t, "two/manifest.json"), NULL), "/one/"));
    return rc ? rc : close_rc;
}

static void copies_of_copies_are_traced(void **state)
{
    fail_each_allocation(*state, copy_a_copy_once);
}

/* Two contexts share a directory: one reads the copies that the other has recorded. */
static int reload_manifest_once(struct test *t)
{
    char dir[300];
    struct exti_ctx_opts opts;
    struct exti_ctx *one = NULL, *two = NULL;
    int rc, close_rc;

    exti__mem_fail_after(-1);
    snprintf(dir, sizeof dir, "%s/ctx", t->dir);
    assert_int_equal(system(iso_text("rm -rf '%s'", dir)), 0);
    opts = iso_opts(dir, NULL);
    assert_ok(exti_ctx_open(&one, &opts, &t->err), &t->err);
    assert_ok(exti_ctx_open(&two, &opts, &t->err), &t->err);
    assert_ok(exti_copy(two, toy("ext_a.so"), NULL, &t->err), &t->err);
    assert_ok(exti_ctx_close(two, &t->err), &t->err);
    exti__mem_fail_after(failing_allocation);
    rc = exti_copy(one, toy("ext_cxx.so"), NULL, &t->err);
    close_rc = exti_ctx_close(one, rc ? NULL : &t->err);
    return rc ? rc : close_rc;
}

static void reading_copies_of_another_context_survives(void **state)
{
    struct test *t = *state;

    fail_each_allocation(t, reload_manifest_once);
    assert_two_copies(t);
}

static int clean_once(struct test *t)
{
    char dir[300];

    exti__mem_fail_after(-1);
    snprintf(dir, sizeof dir, "%s/ctx", t->dir);
    /* Cleaning removes only the lock file after the manifest. */
    if (!file_exists(iso_text("%s/manifest.json", dir)))
        assert_int_equal(copy_once(t), 0);
    exti__mem_fail_after(failing_allocation);
    return exti_dir_clean(dir, &t->err);
}

/* A directory that was only cleaned in part can be cleaned again. */
static void cleaning_survives(void **state)
{
    struct test *t = *state;

    fail_each_allocation(t, clean_once);
    assert_string_equal(test_list(t, t->dir), "");
}

/* ---- loading, in a child ---- */

static int load_once(struct exti_ctx *ctx, struct exti_error *err)
{
    struct exti_module *a, *cxx;
    struct exti_proof proof = {.size = sizeof proof};
    void *p;
    int rc = exti_load(ctx, toy("ext_a.so"), &a, err);

    if (rc)
        return rc;
    rc = exti_load(ctx, toy("ext_cxx.so"), &cxx, err);
    if (!rc) {
        rc = exti_symbol(cxx, "cxxext_next", &p, err);
        if (!rc)
            rc = exti_ctx_prove(ctx, NULL, NULL, &proof, err);
        want(exti_close(cxx, NULL) == 0);
    }
    want(exti_close(a, NULL) == 0);
    if (!rc)
        want_int((long)proof.leaks, 0);
    return rc;
}

static void fail_each_allocation_of_loading(int fresh)
{
    struct exti_ctx *ctx = NULL;
    bool failed = true;
    long n;

    for (n = 0; failed; n += step()) {
        struct exti_error err = {0};
        int rc;

        want(n < 100000);
        if (!ctx)
            ctx = iso_open(fresh ? NULL : "x");
        exti__mem_fail_after(n);
        rc = load_once(ctx, &err);
        failed = has_failed(n);
        if (rc)
            want_exti(rc, EXTI_E_NOMEM, &err);
        if (fresh) {
            iso_close_ctx(ctx);
            ctx = NULL;
        }
    }
    printf("%ld allocations\n", n - step());
    want(n > 1);
    if (ctx)
        iso_close_ctx(ctx);
}

ISO_CASE(loading_survives_in_one_context)
{
    fail_each_allocation_of_loading(0);
}

ISO_CASE(loading_survives_in_fresh_contexts)
{
    fail_each_allocation_of_loading(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(inspect_survives),
        exti_test(rewrite_survives),
        exti_test(verify_survives),
        exti_test(copying_survives),
        exti_test(copying_goes_on_after_failures),
        exti_test(copying_many_survives),
        exti_test(copying_with_private_names_survives),
        exti_test(directory_checks_survive),
        cmocka_unit_test_setup_teardown(copying_privately_leaves_nothing, setup_private,
                                        teardown_private),
        exti_test(copies_of_copies_are_traced),
        exti_test(reading_copies_of_another_context_survives),
        exti_test(cleaning_survives),
        cmocka_unit_test(loading_survives_in_one_context),
        cmocka_unit_test(loading_survives_in_fresh_contexts),
    };

    return cmocka_run_group_tests_name("isolation/nomem", tests, NULL, NULL);
}
