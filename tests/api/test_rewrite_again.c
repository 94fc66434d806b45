/* exti_rewrite on its own results: a file that is replaced by its copy, and copies of copies, checked
 * with readelf. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/isolation/iso.h"

static struct exti_rewrite_opts opts_new(void)
{
    return (struct exti_rewrite_opts){.size = sizeof(struct exti_rewrite_opts)};
}

/* Rewrites and verifies; returns the output of readelf -dW for the result. */
static char *rewrite_and_read(struct test *t, const char *src, const char *dst,
                              const struct exti_rewrite_opts *opts)
{
    size_t findings = 99;

    assert_ok(exti_rewrite(src, dst, opts, &t->err), &t->err);
    assert_ok(exti_verify(dst, src, iso_print_finding, NULL, &findings, &t->err), &t->err);
    assert_int_equal(findings, 0);
    return test_must_run(t, "readelf", "-dW", dst, NULL);
}

/* The file with that name is a new one with the wanted bytes, and nothing else is in the folder. */
static void assert_replaced(struct test *t, const char *path, const struct stat *old)
{
    size_t n, m;
    const char *have = test_read(t, path, &n), *want = test_read(t, test_path(t, "want.so"), &m);
    struct stat st;

    assert_int_equal(n, m);
    assert_memory_equal(have, want, n);
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISREG(st.st_mode));
    assert_int_not_equal(st.st_ino, old->st_ino);
    assert_int_equal(st.st_mode, old->st_mode);
    assert_int_equal(st.st_gid, old->st_gid);
    assert_string_equal(test_list(t, t->dir), "a.so\nhard.so\nsoft.so\nwant.so\n");
}

static void the_source_may_be_the_target_by_any_name(void **state)
{
    struct test *t = *state;
    struct exti_rewrite_opts opts = opts_new();
    char *src = test_path(t, "a.so"), *hard = test_path(t, "hard.so"),
         *soft = test_path(t, "soft.so");
    const char *old;
    struct stat st;
    size_t n;

    opts.id = "libnew-name-of-some-length.so";
    test_copy(t, toy("ext_a.so"), src);
    old = test_read(t, src, &n);
    assert_ok(exti_rewrite(src, test_path(t, "want.so"), &opts, &t->err), &t->err);
    assert_int_equal(link(src, hard), 0);
    assert_int_equal(symlink("a.so", soft), 0);
    assert_int_equal(chmod(src, 0640), 0);
    assert_int_equal(stat(src, &st), 0);

    assert_ok(exti_rewrite(src, src, &opts, &t->err), &t->err);
    assert_replaced(t, src, &st);
    assert_memory_equal(test_read(t, hard, NULL), old, n); /* the old file */

    test_copy(t, toy("ext_a.so"), src);
    assert_int_equal(chmod(src, 0600), 0);
    assert_int_equal(stat(src, &st), 0);
    assert_ok(exti_rewrite(src, soft, &opts, &t->err), &t->err);
    assert_replaced(t, src, &st);
    assert_int_equal(stat(src, &st), 0);
    assert_ok(exti_rewrite(soft, soft, &opts, &t->err), &t->err);
    assert_replaced(t, src, &st);
    assert_int_equal(lstat(soft, &st), 0);
    assert_true(S_ISLNK(st.st_mode));

    assert_int_equal(unlink(hard), 0);
    assert_int_equal(unlink(src), 0);
    test_copy(t, toy("ext_a.so"), src);
    assert_int_equal(link(src, hard), 0);
    assert_int_equal(stat(hard, &st), 0);
    assert_ok(exti_rewrite(src, hard, &opts, &t->err), &t->err);
    assert_replaced(t, hard, &st);
    assert_memory_equal(test_read(t, src, NULL), old, n);
}

/* The file is larger than what is edited in memory. */
static void a_large_source_may_be_the_target(void **state)
{
    struct test *t = *state;
    struct exti_rewrite_opts opts = opts_new();
    const char *src = test_path(t, "large.so"), *want;
    char *bytes;
    struct stat st;
    size_t n, m;

    bytes = test_read(t, toy("ext_a.so"), &n);
    bytes = realloc(memcpy(malloc(n + (1 << 20)), bytes, n), n + (1 << 20));
    memset(bytes + n, 7, 1 << 20);
    test_write(src, bytes, n + (1 << 20));
    free(bytes);
    assert_int_equal(chmod(src, 0604), 0);
    opts.id = "libnew-name-of-some-length.so";
    assert_ok(exti_rewrite(src, test_path(t, "want.so"), &opts, &t->err), &t->err);
    assert_ok(exti_rewrite(src, src, &opts, &t->err), &t->err);
    want = test_read(t, test_path(t, "want.so"), &n);
    assert_memory_equal(test_read(t, src, &m), want, n);
    assert_int_equal(n, m);
    assert_int_equal(stat(src, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0604);
    assert_string_equal(test_list(t, t->dir), "large.so\nwant.so\n");
}

static void a_failed_rewrite_leaves_the_source_alone(void **state)
{
    struct test *t = *state;
    const struct exti_needed absent = {"libabsent.so", NULL, EXTI_NEEDED_LAST};
    struct exti_rewrite_opts opts = opts_new();
    char *src = test_path(t, "a.so");
    size_t n;
    const char *old;

    test_copy(t, toy("ext_a.so"), src);
    old = test_read(t, src, &n);
    opts.needed = &absent;
    opts.needed_count = 1;
    assert_exti(exti_rewrite(src, src, &opts, &t->err), EXTI_E_ARG, &t->err, EXTI_NO_OFFSET);
    assert_says(&t->err, "there is no 'libabsent.so' to remove");
    assert_memory_equal(test_read(t, src, NULL), old, n);
    assert_string_equal(test_list(t, t->dir), "a.so\n");
}

static void what_is_not_needed_may_be_removed_if_allowed(void **state)
{
    struct test *t = *state;
    const struct exti_needed edits[] = {{"libabsent.so", NULL, EXTI_NEEDED_LAST},
                                        {"libabsent.so", "libnew.so", EXTI_NEEDED_LAST},
                                        {"libtoydep.so", NULL, EXTI_NEEDED_LAST}};
    struct exti_rewrite_opts opts = opts_new();
    const char *dst = test_path(t, "x.so");
    char *d;

    opts.needed = edits;
    opts.needed_count = 3;
    assert_exti(exti_rewrite(toy("ext_dep.so"), dst, &opts, &t->err), EXTI_E_ARG, &t->err,
                EXTI_NO_OFFSET);
    opts.flags = EXTI_RW_ALLOW_ABSENT;
    d = rewrite_and_read(t, toy("ext_dep.so"), dst, &opts);
    assert_null(strstr(d, "libnew.so"));
    assert_null(strstr(d, "libtoydep.so"));
    opts.flags = 1u << 5;
    assert_exti(exti_rewrite(toy("ext_dep.so"), dst, &opts, &t->err), EXTI_E_ARG, &t->err,
                EXTI_NO_OFFSET);
}

static size_t count_loads(struct test *t, const char *path)
{
    const char *p = test_must_run(t, "readelf", "-lW", path, NULL);
    size_t n = 0;

    while ((p = strstr(p, "  LOAD ")) != NULL) {
        p++;
        n++;
    }
    return n;
}

/* Each copy is made from the last.  The file grows by the text of the edit and by one table that
 * moves, and the number of program headers by one at most. */
static void repeat_in(struct test *t)
{
    enum { TIMES = 20 };
    char name[64], path[TIMES * 20] = "/path";
    const struct exti_needed more = {NULL, name, EXTI_NEEDED_LAST};
    const char *src = toy("ext_dep.so"), *at = test_path(t, "x.so");
    struct exti_rewrite_opts opts = opts_new();
    size_t headers, first = 0, size = 0;
    struct stat st;

    headers = count_loads(t, src);
    for (int i = 0; i < TIMES; i++) {
        snprintf(name, sizeof name, "libof-edit-%d.so", i);
        strcat(path, ":/another");
        opts.needed = &more;
        opts.needed_count = i % 3 == 0;
        opts.id = i % 3 == 1 ? name : NULL;
        opts.path_set = i % 3 == 2 ? path : NULL;
        rewrite_and_read(t, i ? at : src, test_path(t, "y.so"), &opts);
        assert_ok(exti_rewrite(i ? at : src, at, &opts, &t->err), &t->err);
        assert_int_equal(stat(at, &st), 0);
        size = (size_t)st.st_size;
        first = i ? first : size;
    }
    assert_true(count_loads(t, at) <= headers + 1);
    assert_true(size - first < 4096 + TIMES * sizeof name);
    assert_contains(test_must_run(t, "readelf", "-dW", at, NULL), "[libof-edit-18.so]");
}

static void copies_of_copies_grow_by_their_edits_alone(void **state)
{
    for (size_t i = 0; iso_flavour_at(i); i++) {
        iso_flavour = iso_flavour_at(i);
        print_message("flavour %s\n", iso_flavour);
        repeat_in(*state);
    }
    iso_flavour = "gcc";
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(the_source_may_be_the_target_by_any_name),
        exti_test(a_large_source_may_be_the_target),
        exti_test(a_failed_rewrite_leaves_the_source_alone),
        exti_test(what_is_not_needed_may_be_removed_if_allowed),
        exti_test(copies_of_copies_grow_by_their_edits_alone),
    };

    return cmocka_run_group_tests_name("api/rewrite_again", tests, NULL, NULL);
}
