#include "tests/support/exti_test.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/os/fs_map.h"
#include "base/os/fs_replace.h"

/* Edited in memory, and in a file of its own. */
static const size_t sizes[] = {1000, 700001};

struct original {
    char *path;
    uint8_t *bytes;
    struct exti_mapping m;
    struct exti_file_id id;
};

static void write_original(struct test *t, size_t n, struct original *o)
{
    o->path = test_path(t, "from");
    o->bytes = test_alloc(t, n);
    for (size_t i = 0; i < n; i++)
        o->bytes[i] = (uint8_t)(i * 7 + 1);
    test_write(o->path, o->bytes, n);
    assert_ok(exti__fs_map(o->path, &o->m, &o->id, &t->err), &t->err);
}

static void clone_has_the_edits_and_the_tail(void **state)
{
    static const struct exti_range changed[] = {{10, 3}, {900, 1}};
    struct test *t = *state;
    char *to = test_path(t, "to");

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        const size_t n = sizes[i], kept = n - 50, size = n + 5000;
        struct exti_fs_clone c;
        struct exti_fs_source from;
        struct original o;
        uint8_t *bytes;
        size_t got;

        write_original(t, n, &o);
        from = (struct exti_fs_source){o.path, &o.id, &o.m, kept, NULL};
        assert_ok(exti__fs_clone(to, &from, size, 0, &c, &t->err), &t->err);
        assert_memory_equal(c.image.p, o.bytes, kept);
        memcpy(c.image.p + 10, "abc", 3);
        c.image.p[900] = 'd';
        memset(c.image.p + kept, 'e', size - kept);
        assert_ok(exti__fs_clone_replace(&c, to, changed, 2, 0, &t->err), &t->err);
        bytes = (uint8_t *)test_read(t, to, &got);
        memcpy(o.bytes + 10, "abc", 3);
        o.bytes[900] = 'd';
        assert_int_equal(got, size);
        assert_memory_equal(bytes, o.bytes, kept);
        for (size_t k = kept; k < size; k++)
            assert_int_equal(bytes[k], 'e');
        assert_string_equal(test_list(t, t->dir), "from\nto\n");
        exti__fs_unmap(&o.m);
        exti__fs_clone_drop(&c);
    }
}

/* A file system may store more than what was written, as whole blocks. */
#define BLOCKS (64 << 10)

static void clone_has_holes_for_what_is_left_out(void **state)
{
    static const size_t more[] = {200000, 700001};
    struct test *t = *state;
    char *to = test_path(t, "to");

    for (size_t i = 0; i < ARRAY_SIZE(more); i++) {
        const size_t n = more[i];
        /* The last one ends the file. */
        const struct exti_unread left_out = {{{4096, 100000}, {104097, 33}, {n - 50000, 50000}}, 3};
        struct exti_fs_clone c;
        struct exti_fs_source from;
        struct original o;
        struct stat st;
        uint8_t *bytes;
        size_t got;

        write_original(t, n, &o);
        from = (struct exti_fs_source){o.path, &o.id, &o.m, n, &left_out};
        assert_ok(exti__fs_clone(to, &from, n, 0, &c, &t->err), &t->err);
        assert_ok(exti__fs_clone_replace(&c, to, NULL, 0, 0, &t->err), &t->err);
        bytes = (uint8_t *)test_read(t, to, &got);
        for (size_t k = 0; k < left_out.count; k++)
            memset(o.bytes + left_out.part[k].at, 0, left_out.part[k].n);
        assert_int_equal(got, n);
        assert_memory_equal(bytes, o.bytes, n);
        assert_int_equal(stat(to, &st), 0);
        assert_true((size_t)st.st_blocks * 512 <= n - 150000 + BLOCKS);
        exti__fs_unmap(&o.m);
    }
}

static void dropped_clone_leaves_no_file(void **state)
{
    struct test *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        struct exti_fs_clone c;
        struct exti_fs_source from;
        struct original o;

        write_original(t, sizes[i], &o);
        from = (struct exti_fs_source){o.path, &o.id, &o.m, sizes[i], NULL};
        assert_ok(exti__fs_clone(test_path(t, "to"), &from, sizes[i], 0, &c, &t->err), &t->err);
        exti__fs_clone_drop(&c);
        assert_string_equal(test_list(t, t->dir), "from\n");
        exti__fs_unmap(&o.m);
    }
}

static void clone_refuses_another_version(void **state)
{
    struct test *t = *state;
    struct exti_fs_clone c = {.size = 77};
    struct exti_fs_source from;
    struct original o;

    write_original(t, sizes[1], &o);
    from = (struct exti_fs_source){o.path, &o.id, &o.m, sizes[1], NULL};
    assert_int_equal(chmod(o.path, 0600), 0);
    assert_exti(exti__fs_clone(test_path(t, "to"), &from, sizes[1], 0, &c, &t->err), EXTI_E_IO,
                &t->err, EXTI_NO_OFFSET);
    assert_says(&t->err, "changed while it was copied");
    assert_int_equal(t->err.os_error, ESTALE);
    assert_string_equal(t->err.file, o.path);
    assert_int_equal(unlink(o.path), 0);
    assert_exti(exti__fs_clone(test_path(t, "to"), &from, sizes[1], 0, &c, &t->err), EXTI_E_IO,
                &t->err, EXTI_NO_OFFSET);
    assert_int_equal(t->err.os_error, ENOENT);
    assert_int_equal(c.size, 77);
    assert_string_equal(test_list(t, t->dir), "");
    exti__fs_unmap(&o.m);
}

static void clone_in_no_folder_fails(void **state)
{
    struct test *t = *state;
    struct exti_fs_clone c;
    struct exti_fs_source from;
    struct original o;
    char *to = test_path(t, "none/to");

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        int rc;

        write_original(t, sizes[i], &o);
        from = (struct exti_fs_source){o.path, &o.id, &o.m, sizes[i], NULL};
        rc = exti__fs_clone(to, &from, sizes[i], 0, &c, &t->err);
        if (!rc)
            rc = exti__fs_clone_replace(&c, to, NULL, 0, 0, &t->err);
        assert_exti(rc, EXTI_E_IO, &t->err, EXTI_NO_OFFSET);
        assert_int_equal(t->err.os_error, ENOENT);
        exti__fs_unmap(&o.m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(clone_has_the_edits_and_the_tail),
        exti_test(clone_has_holes_for_what_is_left_out),
        exti_test(dropped_clone_leaves_no_file),
        exti_test(clone_refuses_another_version),
        exti_test(clone_in_no_folder_fails),
    };

    return cmocka_run_group_tests_name("base/os/fs_clone", tests, NULL, NULL);
}
