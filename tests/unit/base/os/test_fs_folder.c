#include "tests/support/exti_test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/os/fs_folder.h"

static void mkdir_says_whether_it_made_the_folder(void **state)
{
    struct test *t = *state;
    char *dir = test_path(t, "d"), *file = test_path(t, "f");
    bool made = false;

    assert_ok(exti__fs_mkdir(dir, &made, &t->err), &t->err);
    assert_true(made);
    assert_ok(exti__fs_mkdir(dir, &made, &t->err), &t->err);
    assert_false(made);
    assert_exti(exti__fs_mkdir(test_path(t, "no/d"), &made, &t->err), EXTI_E_IO, &t->err,
                EXTI_NO_OFFSET);
    assert_int_equal(t->err.os_error, ENOENT);
    test_write(file, "", 0);
    assert_exti(exti__fs_mkdir(file, &made, &t->err), EXTI_E_IO, &t->err, EXTI_NO_OFFSET);
    assert_int_equal(t->err.os_error, ENOTDIR);
    assert_says(&t->err, "a file has this name");
    assert_string_equal(t->err.file, file);
    assert_int_equal(symlink("nowhere", test_path(t, "dangling")), 0);
    assert_exti(exti__fs_mkdir(test_path(t, "dangling"), &made, &t->err), EXTI_E_IO, &t->err,
                EXTI_NO_OFFSET);
    assert_int_equal(t->err.os_error, ENOENT);
}

static void mkdtemp_makes_a_private_folder(void **state)
{
    struct test *t = *state;
    char *a, *b;
    struct stat st;

    setenv("TMPDIR", t->dir, 1);
    assert_ok(exti__fs_mkdtemp(&a, &t->err), &t->err);
    assert_ok(exti__fs_mkdtemp(&b, &t->err), &t->err);
    assert_string_not_equal(a, b);
    assert_memory_equal(a, t->dir, strlen(t->dir));
    assert_int_equal(stat(a, &st), 0);
    assert_int_equal(st.st_mode, S_IFDIR | 0700);
    exti__free(a);
    exti__free(b);

    setenv("TMPDIR", test_path(t, "missing"), 1);
    assert_exti(exti__fs_mkdtemp(&a, &t->err), EXTI_E_IO, &t->err, EXTI_NO_OFFSET);
    assert_string_equal(t->err.file, test_path(t, "missing"));
    assert_int_equal(t->err.os_error, ENOENT);

    setenv("TMPDIR", "relative", 1);
    assert_ok(exti__fs_mkdtemp(&a, &t->err), &t->err);
    assert_memory_equal(a, "/tmp/", 5);
    rmdir(a);
    exti__free(a);
    unsetenv("TMPDIR");
    assert_ok(exti__fs_mkdtemp(&a, &t->err), &t->err);
    assert_memory_equal(a, "/tmp/", 5);
    rmdir(a);
    exti__free(a);
}

#define FOLDERS 16
#define EXT4_MAGIC 0xef53 /* statfs(2) */
#define MANY_FILES 1000000

static unsigned long long group_of(const char *path)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return (unsigned long long)st.st_ino / 8192; /* mke2fs(8)'s default of inodes in a group */
}

static size_t count_groups(const unsigned long long *groups)
{
    size_t count = 0;

    for (size_t i = 0; i < FOLDERS; i++) {
        size_t same = 0;

        while (groups[same] != groups[i])
            same++;
        count += same == i;
    }
    return count;
}

/* Makes private folders in `parent`, and others in turns. */
static bool lie_apart(struct test *t, const char *parent)
{
    unsigned long long apart[FOLDERS], together[FOLDERS];
    struct stat st;
    char *path;

    assert_int_equal(mkdir(parent, 0700), 0);
    setenv("TMPDIR", parent, 1);
    for (size_t i = 0; i < FOLDERS; i++) {
        assert_ok(exti__fs_mkdtemp(&path, &t->err), &t->err);
        apart[i] = group_of(path);
        assert_int_equal(rmdir(path), 0);
        exti__free(path);
        path = test_format(t, "%s/%zu", parent, i);
        assert_int_equal(mkdir(path, 0700), 0);
        together[i] = group_of(path);
    }
    unsetenv("TMPDIR");
    assert_int_equal(stat(parent, &st), 0);
    assert_int_equal(st.st_nlink, 2 + FOLDERS); /* no folder that was made on the way is left */
    return count_groups(apart) > 2 * count_groups(together);
}

/* ext4 puts files into the group of their folder.  Folders that are made as others are lie in the
 * groups beside their parent, which is the control.  Where there is little room they may come
 * anywhere, and others take room meanwhile: so there are some attempts. */
static void private_folders_lie_apart(void **state)
{
    struct test *t = *state;
    struct statfs fs;
    bool apart = false;

    assert_int_equal(statfs(t->dir, &fs), 0);
    if (fs.f_type != EXT4_MAGIC || fs.f_files < MANY_FILES)
        skip_because("the file system is not ext4, or small");
    for (int i = 0; i < 10 && !apart; i++)
        apart = lie_apart(t, test_format(t, "%s/in%d", t->dir, i));
    assert_true(apart);
}

struct listing {
    char names[256];
    int count, stop_at, answer;
};

static int note_name(void *user, const char *name)
{
    struct listing *l = user;

    strncat(l->names, name, sizeof l->names - strlen(l->names) - 1);
    return ++l->count == l->stop_at ? l->answer : 0;
}

static void list_gives_every_name_once(void **state)
{
    struct test *t = *state;
    struct listing l = {0};

    assert_ok(exti__fs_list(t->dir, note_name, &l, &t->err), &t->err);
    assert_int_equal(l.count, 0);
    test_write(test_path(t, "one"), "", 0);
    test_write(test_path(t, ".two"), "", 0);
    assert_int_equal(mkdir(test_path(t, "three"), 0700), 0);
    assert_ok(exti__fs_list(t->dir, note_name, &l, &t->err), &t->err);
    assert_int_equal(l.count, 3);
    assert_contains(l.names, "one");
    assert_contains(l.names, ".two");
    assert_contains(l.names, "three");
}

static void list_stops_when_the_callback_asks(void **state)
{
    struct test *t = *state;
    struct listing l = {.stop_at = 2, .answer = 7};

    for (int i = 0; i < 5; i++)
        test_write(test_format(t, "%s/%d", t->dir, i), "", 0);
    assert_int_equal(exti__fs_list(t->dir, note_name, &l, &t->err), 7);
    assert_int_equal(l.count, 2);
    assert_exti(exti__fs_list(test_path(t, "0"), note_name, &l, &t->err), EXTI_E_IO, &t->err,
                EXTI_NO_OFFSET);
    assert_int_equal(t->err.os_error, ENOTDIR);
}

static void sync_parent_needs_the_folder_only(void **state)
{
    struct test *t = *state;

    assert_ok(exti__fs_sync_parent(test_path(t, "absent"), &t->err), &t->err);
    assert_ok(exti__fs_sync_parent("absent", &t->err), &t->err);
    assert_ok(exti__fs_sync_parent("/absent", &t->err), &t->err);
    assert_exti(exti__fs_sync_parent(test_path(t, "no/d"), &t->err), EXTI_E_IO, &t->err,
                EXTI_NO_OFFSET);
    assert_int_equal(t->err.os_error, ENOENT);
    assert_says(&t->err, "cannot sync folder");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(mkdir_says_whether_it_made_the_folder),
        exti_test(mkdtemp_makes_a_private_folder),
        exti_test(private_folders_lie_apart),
        exti_test(list_gives_every_name_once),
        exti_test(list_stops_when_the_callback_asks),
        exti_test(sync_parent_needs_the_folder_only),
    };

    return cmocka_run_group_tests_name("base/os/fs_folder", tests, NULL, NULL);
}
