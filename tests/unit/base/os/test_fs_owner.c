#include "tests/support/exti_test.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/xattr.h>
#endif

#include "base/mem.h"
#include "base/os/fs_owner.h"
#include "base/os/fs_read.h"

enum { STRANGER = 4711 };

static char *make_folder(struct test *t, const char *name, mode_t mode)
{
    char *path = test_path(t, name);

    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(chmod(path, mode), 0);
    return path;
}

static char *make_file(struct test *t, const char *name, mode_t mode)
{
    char *path = test_path(t, name);

    test_write(path, "text", 4);
    assert_int_equal(chmod(path, mode), 0);
    return path;
}

static void believed(struct test *t, const char *folder)
{
    assert_ok(exti__fs_check_folder(folder, &t->err), &t->err);
}

/* `at` names what is at fault. */
static void refused(struct test *t, const char *folder, const char *at, const char *says)
{
    assert_exti(exti__fs_check_folder(folder, &t->err), EXTI_E_TRUST, &t->err, EXTI_NO_OFFSET);
    assert_string_equal(t->err.file, at);
    assert_says(&t->err, says);
}

/* Not even root can in a user namespace without that user. */
static void only_root_gives_files_away(struct test *t)
{
    char *probe = make_file(t, "probe", 0644);

    if (chown(probe, STRANGER, STRANGER) != 0)
        skip();
}

static void a_folder_others_can_write_to_is_refused(void **state)
{
    struct test *t = *state;
    char *top = make_folder(t, "top", 0755), *in = make_folder(t, "top/in", 0755);

    believed(t, in);
    assert_int_equal(chmod(top, 0757), 0);
    refused(t, in, top, "can be written by everyone");
    assert_int_equal(chmod(top, 01777), 0);
    believed(t, in);
    /* Others could put files into it. */
    refused(t, top, top, "can be written by everyone");
    assert_int_equal(chmod(in, 01777), 0);
    refused(t, in, in, "can be written by everyone");
}

static void a_folder_of_another_is_refused(void **state)
{
    struct test *t = *state;
    char *top = make_folder(t, "top", 01777), *in = make_folder(t, "top/in", 0755);
    char *deep = make_folder(t, "top/in/deep", 0755);

    only_root_gives_files_away(t);
    assert_int_equal(chown(in, STRANGER, 0), 0);
    refused(t, in, in, "belongs to user 4711");
    refused(t, deep, in, "belongs to user 4711");
    assert_int_equal(chown(in, 0, 0), 0);
    believed(t, deep);
    assert_int_equal(chown(top, STRANGER, 0), 0);
    refused(t, deep, top, "belongs to user 4711");
}

static void each_link_and_its_folder_count(void **state)
{
    struct test *t = *state;
    char *in = make_folder(t, "in", 0755), *open = make_folder(t, "open", 0757);
    char *via = test_path(t, "open/link");
    char *there = test_path(t, "sticky/link"), *relative = test_path(t, "relative");
    char *loop = test_path(t, "loop");

    make_folder(t, "sticky", 01777);
    assert_int_equal(symlink(in, via), 0);
    refused(t, via, open, "can be written by everyone");
    assert_int_equal(symlink("../sticky/../in/.", there), 0);
    believed(t, there);
    assert_int_equal(symlink("open//link/", relative), 0);
    refused(t, relative, open, "can be written by everyone");
    assert_int_equal(symlink("loop", loop), 0);
    assert_exti(exti__fs_check_folder(loop, &t->err), EXTI_E_IO, &t->err, EXTI_NO_OFFSET);
    assert_int_equal(t->err.os_error, ELOOP);
}

static void a_link_of_another_is_refused(void **state)
{
    struct test *t = *state;
    char *in = make_folder(t, "in", 0755), *there = test_path(t, "sticky/link");

    only_root_gives_files_away(t);
    make_folder(t, "sticky", 01777);
    assert_int_equal(symlink(in, there), 0);
    believed(t, there);
    assert_int_equal(lchown(there, STRANGER, 0), 0);
    refused(t, there, there, "belongs to user 4711");
}

static void a_relative_path_starts_at_the_current_folder(void **state)
{
    struct test *t = *state;
    char *in = make_folder(t, "in", 0755), *deep = make_folder(t, "in/deep", 0755), was[4096];

    assert_non_null(getcwd(was, sizeof was));
    assert_int_equal(chdir(deep), 0);
    believed(t, ".");
    believed(t, "../deep/");
    assert_int_equal(chmod(in, 0757), 0);
    refused(t, ".", in, "can be written by everyone");
    refused(t, "../deep", in, "can be written by everyone");
    assert_int_equal(chdir(was), 0);
}

static void what_is_no_folder_fails(void **state)
{
    struct test *t = *state;
    char *file = make_file(t, "f", 0644), name[5000];

    assert_exti(exti__fs_check_folder(file, &t->err), EXTI_E_IO, &t->err, EXTI_NO_OFFSET);
    assert_int_equal(t->err.os_error, ENOTDIR);
    assert_exti(exti__fs_check_folder(test_path(t, "none"), &t->err), EXTI_E_IO, &t->err,
                EXTI_NO_OFFSET);
    assert_int_equal(t->err.os_error, ENOENT);
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = 0;
    assert_exti(exti__fs_check_folder(name, &t->err), EXTI_E_IO, &t->err, EXTI_NO_OFFSET);
    assert_int_equal(t->err.os_error, ENAMETOOLONG);
}

/* The first user of the system with a private group, and whether there is one. */
static bool find_private(uid_t *user, gid_t *group)
{
    const struct passwd *p;
    bool found = false;

    setpwent();
    while (!found && (p = getpwent())) {
        const struct group *g = p->pw_uid ? getgrgid(p->pw_gid) : NULL;

        found = g && strcmp(g->gr_name, p->pw_name) == 0 && !*g->gr_mem;
        *user = p->pw_uid;
        *group = p->pw_gid;
    }
    endpwent();
    return found;
}

/* With umask 002 and private groups, which many systems have, nobody else can write. */
static void a_private_group_may_write(void **state)
{
    struct test *t = *state;
    char *in = make_folder(t, "in", 0775);
    uid_t user = 0;
    gid_t group = 0;
    int mine, others, root;

    only_root_gives_files_away(t);
    if (!find_private(&user, &group))
        skip();
    assert_int_equal(chmod(t->dir, 0755), 0);
    root = exti__fs_check_folder(in, NULL); /* root's own group is private too */
    assert_int_equal(chown(in, user, group), 0);
    assert_int_equal(seteuid(user), 0);
    mine = exti__fs_check_folder(in, NULL);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(chown(in, user, STRANGER), 0);
    assert_int_equal(seteuid(user), 0);
    others = exti__fs_check_folder(in, &t->err);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(root, 0);
    assert_int_equal(mine, 0);
    assert_int_equal(others, EXTI_E_TRUST);
    assert_says(&t->err, "can be written by group 4711");
}

/* An ACL's entries for others show in the group's bits, whatever group it is: here root's own. */
static void an_acl_is_not_taken_for_a_private_group(void **state)
{
    static const struct {
        uint32_t version;
        struct {
            uint16_t tag, mode;
            uint32_t id;
        } entries[5];
    } acl = {2, /* linux/posix_acl_xattr.h */
             {{0x01, 7, UINT32_MAX},
              {0x02, 7, STRANGER}, /* a user */
              {0x04, 5, UINT32_MAX},
              {0x10, 7, UINT32_MAX},
              {0x20, 5, UINT32_MAX}}};
    struct test *t = *state;
    char *in = make_folder(t, "in", 0775);

    only_root_gives_files_away(t);
    believed(t, in);
#ifdef __linux__
    if (setxattr(in, "system.posix_acl_access", &acl, sizeof acl, 0) == 0)
        refused(t, in, in, "can be written by group 0");
    else
        skip();
#else
    (void)acl;
    skip();
#endif
}

static void files_are_checked_as_folders_are(void **state)
{
    struct test *t = *state;
    char *file = make_file(t, "f", 0644), *link = test_path(t, "link"), *text = NULL;
    struct exti_file_id id = {0};
    bool trusted = false;
    size_t n = 0;

    assert_ok(exti__fs_check_file(file, &t->err), &t->err);
    assert_ok(exti__fs_own_id(file, &id, &trusted, &t->err), &t->err);
    assert_true(trusted);
    assert_int_equal(id.size, 4);
    assert_true(id.ctime_ns > 0);
    assert_ok(exti__fs_read_trusted(file, 9, &text, &n, &t->err), &t->err);
    assert_string_equal(text, "text");
    exti__free(text);

    assert_int_equal(chmod(file, 0646), 0);
    assert_exti(exti__fs_check_file(file, &t->err), EXTI_E_TRUST, &t->err, EXTI_NO_OFFSET);
    assert_string_equal(t->err.file, file);
    assert_ok(exti__fs_own_id(file, &id, &trusted, &t->err), &t->err);
    assert_false(trusted);
    assert_exti(exti__fs_read_trusted(file, 9, &text, &n, &t->err), EXTI_E_TRUST, &t->err,
                EXTI_NO_OFFSET);

    assert_int_equal(chmod(file, 0644), 0);
    assert_int_equal(symlink(file, link), 0);
    assert_exti(exti__fs_check_file(link, &t->err), EXTI_E_TRUST, &t->err, EXTI_NO_OFFSET);
    assert_says(&t->err, "symbolic link");
    assert_exti(exti__fs_own_id(link, &id, &trusted, &t->err), EXTI_E_IO, &t->err, EXTI_NO_OFFSET);
    assert_int_equal(t->err.os_error, ELOOP);
    assert_exti(exti__fs_read_trusted(link, 9, &text, &n, &t->err), EXTI_E_TRUST, &t->err,
                EXTI_NO_OFFSET);
}

static void a_file_of_another_is_refused(void **state)
{
    struct test *t = *state;
    char *file = make_file(t, "f", 0644);

    only_root_gives_files_away(t);
    assert_int_equal(chown(file, STRANGER, 0), 0);
    assert_exti(exti__fs_check_file(file, &t->err), EXTI_E_TRUST, &t->err, EXTI_NO_OFFSET);
    assert_says(&t->err, "belongs to user 4711");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(a_folder_others_can_write_to_is_refused),
        exti_test(a_folder_of_another_is_refused),
        exti_test(each_link_and_its_folder_count),
        exti_test(a_link_of_another_is_refused),
        exti_test(a_relative_path_starts_at_the_current_folder),
        exti_test(what_is_no_folder_fails),
        exti_test(a_private_group_may_write),
        exti_test(an_acl_is_not_taken_for_a_private_group),
        exti_test(files_are_checked_as_folders_are),
        exti_test(a_file_of_another_is_refused),
    };

    return cmocka_run_group_tests_name("base/os/fs_owner", tests, NULL, NULL);
}
