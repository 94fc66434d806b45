#include "tests/support/exti_test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/os/fs_owner.h"
#include "loader/store/copy_identity.h"

static const char text[] = "abc";
static const struct exti_unread nothing;

/* A file with that text, and an entry that records it. */
static char *make_recorded(struct test *t, struct exti_entry *e)
{
    char *path = test_path(t, "copy");
    bool trusted;

    test_write(path, text, strlen(text));
    *e = (struct exti_entry){0};
    assert_ok(exti__fs_own_id(path, &e->copy_id, &trusted, &t->err), &t->err);
    assert_ok(exti__copy_hash((const uint8_t *)text, strlen(text), &nothing, e->copy_hash, &t->err),
              &t->err);
    return path;
}

/* FIPS 180-2, appendix B.1. */
static void hash_is_sha256_in_hex(void **state)
{
    struct test *t = *state;
    struct exti_entry e;

    make_recorded(t, &e);
    assert_string_equal(e.copy_hash,
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

/* Nobody loads what is there. */
static void what_is_left_out_is_not_hashed(void **state)
{
    static const uint8_t bytes[] = "-a----bc-";
    static const struct exti_unread left_out = {{{0, 1}, {2, 4}, {8, 1}}, 3};
    struct test *t = *state;
    struct exti_entry e;
    char *path = make_recorded(t, &e), hash[EXTI_HASH_MAX];
    struct exti_file_id id;

    assert_ok(exti__copy_hash(bytes, 9, &left_out, hash, &t->err), &t->err);
    assert_string_equal(hash, e.copy_hash);
    test_write(path, bytes, 9);
    assert_ok(exti__copy_hash_of(path, &left_out, &id, hash, &t->err), &t->err);
    assert_string_equal(hash, e.copy_hash);
    test_write(path, bytes, 8);
    assert_exti(exti__copy_hash_of(path, &left_out, &id, hash, &t->err), EXTI_E_CHECK, &t->err, 8);
}

static void set_times(const char *path, const struct exti_file_id *id)
{
    const struct timespec mtime = {(time_t)(id->mtime_ns / 1000000000),
                                   (long)(id->mtime_ns % 1000000000)};

    assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[2]){mtime, mtime}, 0), 0);
}

/* The hash is not looked at: this one is of nothing. */
static void a_file_with_the_recorded_identity_is_not_read(void **state)
{
    struct test *t = *state;
    struct exti_entry e;
    char *path = make_recorded(t, &e);
    struct exti_file_id now = {0};

    memset(e.copy_hash, '0', sizeof e.copy_hash - 1);
    assert_true(exti__copy_is_recorded(path, &e, false, &now));
    assert_true(exti__copy_same_id(&now, &e.copy_id));
}

static void each_part_of_the_identity_counts(void **state)
{
    struct test *t = *state;
    struct exti_entry e;
    char *path = make_recorded(t, &e);
    const struct exti_file_id id = e.copy_id;
    struct exti_file_id now, other[5] = {id, id, id, id, id};

    other[0].inode++;
    other[1].device++;
    other[2].mtime_ns++;
    other[3].ctime_ns++;
    other[4].size++;
    for (size_t i = 0; i < ARRAY_SIZE(other); i++) {
        e.copy_id = other[i];
        /* Another size is another file whatever its hash. */
        assert_int_equal(exti__copy_is_recorded(path, &e, false, &now), i < 4);
        if (i < 4)
            assert_true(exti__copy_same_id(&now, &id));
        e.copy_hash[0] ^= 1;
        assert_false(exti__copy_is_recorded(path, &e, false, &now));
        assert_int_equal(exti__copy_reported_state(path, &e), EXTI_COPY_MISSING);
        e.copy_hash[0] ^= 1;
    }
}

static void without_a_hash_only_those_who_report_believe_a_moved_copy(void **state)
{
    struct test *t = *state;
    struct exti_entry e;
    char *path = make_recorded(t, &e);
    struct exti_file_id now;

    e.copy_hash[0] = 0;
    e.copy_id.inode++;
    assert_false(exti__copy_is_recorded(path, &e, false, &now));
    assert_int_equal(exti__copy_reported_state(path, &e), EXTI_COPY_FRESH);
    e.copy_id.mtime_ns++;
    assert_int_equal(exti__copy_reported_state(path, &e), EXTI_COPY_MISSING);
}

/* As after a stranger's or a disk's work: size and mtime are as they were. */
static void other_bytes_are_detected(void **state)
{
    struct test *t = *state;
    struct exti_entry e;
    char *path = make_recorded(t, &e);
    struct exti_file_id now;
    int fd = open(path, O_WRONLY);

    assert_int_equal(pwrite(fd, "x", 1, 1), 1);
    close(fd);
    set_times(path, &e.copy_id);
    assert_false(exti__copy_is_recorded(path, &e, false, &now));
    assert_int_equal(exti__copy_reported_state(path, &e), EXTI_COPY_MISSING);
}

static void links_and_files_of_others_are_none_of_ours(void **state)
{
    struct test *t = *state;
    struct exti_entry e;
    char *path = make_recorded(t, &e), *link = test_path(t, "link");
    struct exti_file_id now;
    bool trusted;

    assert_int_equal(symlink(path, link), 0);
    assert_false(exti__copy_is_recorded(link, &e, true, &now));
    assert_int_equal(chmod(path, 0646), 0);
    assert_ok(exti__fs_own_id(path, &e.copy_id, &trusted, &t->err), &t->err);
    assert_false(exti__copy_is_recorded(path, &e, false, &now));
    assert_true(exti__copy_is_recorded(path, &e, true, &now));
    assert_int_equal(unlink(path), 0);
    assert_false(exti__copy_is_recorded(path, &e, true, &now));
}

/* What cannot be hashed is not the recorded copy; it is made again. */
static void out_of_memory_is_not_a_match(void **state)
{
    struct test *t = *state;
    struct exti_entry e;
    char *path = make_recorded(t, &e), hash[EXTI_HASH_MAX] = "untouched";
    struct exti_file_id now;
    bool same = false;
    long n = 0;

    e.copy_id.inode++;
    for (; !same && n < 10; n++) {
        exti__mem_fail_after(n);
        same = exti__copy_is_recorded(path, &e, false, &now);
    }
    exti__mem_fail_after(0);
    assert_exti(exti__copy_hash((const uint8_t *)"", 0, &nothing, hash, &t->err), EXTI_E_NOMEM,
                &t->err, EXTI_NO_OFFSET);
    exti__mem_fail_after(-1);
    assert_true(same);
    assert_in_range(n, 2, 9);
    assert_string_equal(hash, "untouched");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(hash_is_sha256_in_hex),
        exti_test(what_is_left_out_is_not_hashed),
        exti_test(a_file_with_the_recorded_identity_is_not_read),
        exti_test(each_part_of_the_identity_counts),
        exti_test(without_a_hash_only_those_who_report_believe_a_moved_copy),
        exti_test(other_bytes_are_detected),
        exti_test(links_and_files_of_others_are_none_of_ours),
        exti_test(out_of_memory_is_not_a_match),
    };

    return cmocka_run_group_tests_name("store/copy_identity", tests, NULL, NULL);
}
