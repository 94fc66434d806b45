#include "base/os/fs_owner.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/xattr.h>
#endif

#include "base/error.h"
#include "base/os/fs_posix.h"

#define LINKS_MAX 40 /* as many as Linux follows */

static bool is_trusted_user(uid_t user)
{
    return user == 0 || user == geteuid();
}

/* With a POSIX ACL the mode's group bits are the ACL's mask: what they grant is granted to others
 * than the group. */
static bool has_acl(const char *path)
{
#ifdef __linux__
    return lgetxattr(path, "system.posix_acl_access", NULL, 0) > 0;
#else
    (void)path;
    return false;
#endif
}

/* Nobody whose private group this is not can be its member, unless the user databases say so: users
 * whose primary group it is too are not looked for, as there may be very many users. */
static bool is_private_group(uid_t user, gid_t group)
{
    char user_text[4096], group_text[4096];
    struct passwd p, *found_user = NULL;
    struct group g, *found_group = NULL;

    if (getpwuid_r(user, &p, user_text, sizeof user_text, &found_user) || !found_user ||
        p.pw_gid != group || getgrgid_r(group, &g, group_text, sizeof group_text, &found_group) ||
        !found_group || strcmp(g.gr_name, p.pw_name) != 0)
        return false;
    for (char **member = g.gr_mem; *member; member++)
        if (strcmp(*member, p.pw_name) != 0)
            return false;
    return true;
}

static bool group_can_write(const char *path, const struct stat *st)
{
    return st->st_mode & S_IWGRP && (has_acl(path) || !is_private_group(st->st_uid, st->st_gid));
}

static int fail_owner(const char *path, uid_t owner, struct exti_error *err)
{
    exti__fail(err, EXTI_E_TRUST, EXTI_NO_OFFSET,
               "belongs to user %lu, who could put other code into it; use a directory of your own",
               (unsigned long)owner);
    exti__error_file(err, path);
    return EXTI_E_TRUST;
}

static int check_writers(const char *path, const struct stat *st, struct exti_error *err)
{
    char who[64];

    if (st->st_mode & S_IWOTH)
        snprintf(who, sizeof who, "everyone");
    else if (group_can_write(path, st))
        snprintf(who, sizeof who, "group %lu", (unsigned long)st->st_gid);
    else
        return 0;
    exti__fail(
        err, EXTI_E_TRUST, EXTI_NO_OFFSET,
        "can be written by %s, who could put other code into it; use a directory of your own, "
        "or take the permission away (chmod go-w)",
        who);
    exti__error_file(err, path);
    return EXTI_E_TRUST;
}

int exti__posix_check_owner(const char *path, const struct stat *st, struct exti_error *err)
{
    return is_trusted_user(st->st_uid) ? check_writers(path, st, err)
                                       : fail_owner(path, st->st_uid, err);
}

int exti__fs_check_file(const char *path, struct exti_error *err)
{
    struct stat st;
    int rc;

    if (lstat(path, &st) != 0)
        return exti__fail_io(err, errno, path, "cannot look up file");
    if (S_ISLNK(st.st_mode)) {
        rc = exti__fail(err, EXTI_E_TRUST, EXTI_NO_OFFSET,
                        "is a symbolic link, and not a file of the context directory");
        exti__error_file(err, path);
        return rc;
    }
    rc = exti__posix_check_regular(&st, path, err);
    return rc ? rc : exti__posix_check_owner(path, &st, err);
}

int exti__fs_own_id(const char *path, struct exti_file_id *out, bool *trusted,
                    struct exti_error *err)
{
    struct stat st;
    int rc;

    if (lstat(path, &st) != 0)
        return exti__fail_io(err, errno, path, "cannot look up file");
    if (S_ISLNK(st.st_mode))
        return exti__fail_io(err, ELOOP, path, "is a symbolic link");
    rc = exti__posix_check_regular(&st, path, err);
    if (rc)
        return rc;
    *out = exti__posix_id_of(&st);
    *trusted = !exti__posix_check_owner(path, &st, NULL);
    return 0;
}

/* ---- the way to a folder ---- */

/* A path on its way from / to its end.  Each folder is checked before what lies in it is looked up:
 * so nobody who is not trusted can change that between the look and the use of the path. */
struct walk {
    char at[PATH_MAX];   /* the folder reached, without links and without a slash at its end */
    char rest[PATH_MAX]; /* what follows */
    uid_t top;           /* the owner of / */
    int links;           /* how many were followed */
    struct stat st;      /* of `at` */
};

/* Whoever owns / can replace anything, the C library included.  That need not be user 0: in a user
 * namespace that does not map it, as sandboxes make them, all files of the real root belong to the
 * overflow user. */
static bool is_trusted_above(const struct walk *w, uid_t owner)
{
    return is_trusted_user(owner) || owner == w->top;
}

static int check_above(const struct walk *w, struct exti_error *err)
{
    const char *path = *w->at ? w->at : "/";

    if (!is_trusted_above(w, w->st.st_uid))
        return fail_owner(path, w->st.st_uid, err);
    /* In a sticky folder only its owner and root can rename or remove what others own. */
    return w->st.st_mode & S_ISVTX ? 0 : check_writers(path, &w->st, err);
}

/* Puts `text` before the rest of the path, with a slash between. */
static int put_before_rest(struct walk *w, const char *text, struct exti_error *err)
{
    const size_t n = strlen(text), rest = strlen(w->rest);

    if (n + rest + 2 > sizeof w->rest)
        return exti__fail_io(err, ENAMETOOLONG, text, "cannot follow the path");
    memmove(w->rest + n + 1, w->rest, rest + 1);
    memcpy(w->rest, text, n);
    w->rest[n] = '/';
    return 0;
}

static int follow_link(struct walk *w, size_t folder, struct exti_error *err)
{
    char target[PATH_MAX];
    ssize_t n;

    if (!is_trusted_above(w, w->st.st_uid))
        return fail_owner(w->at, w->st.st_uid, err);
    n = readlink(w->at, target, sizeof target - 1);
    if (n < 0 || ++w->links > LINKS_MAX)
        return exti__fail_io(err, n < 0 ? errno : ELOOP, w->at, "cannot follow link");
    target[n] = 0;
    w->at[*target == '/' ? 0 : folder] = 0;
    return put_before_rest(w, target, err);
}

/* Moves the first name of the rest to the folder.  *linked: that was a link; its target is in the
 * rest now. */
static int take_name(struct walk *w, bool *linked, struct exti_error *err)
{
    const size_t folder = strlen(w->at), n = strcspn(w->rest, "/");
    const size_t slashes = strspn(w->rest + n, "/");
    char *slash;

    *linked = false;
    if (folder + n + 2 > sizeof w->at)
        return exti__fail_io(err, ENAMETOOLONG, w->at, "cannot follow the path");
    snprintf(w->at + folder, sizeof w->at - folder, "/%.*s", (int)n, w->rest);
    memmove(w->rest, w->rest + n + slashes, strlen(w->rest + n + slashes) + 1);
    if (n == 0 || strcmp(w->at + folder, "/.") == 0) {
        w->at[folder] = 0;
    } else if (strcmp(w->at + folder, "/..") == 0) {
        w->at[folder] = 0;
        slash = strrchr(w->at, '/');
        w->at[slash ? slash - w->at : 0] = 0;
    }
    if (lstat(*w->at ? w->at : "/", &w->st) != 0)
        return exti__fail_io(err, errno, w->at, "cannot look up folder");
    *linked = S_ISLNK(w->st.st_mode);
    if (*linked)
        return follow_link(w, folder, err);
    return S_ISDIR(w->st.st_mode) ? 0 : exti__fail_io(err, ENOTDIR, w->at, "is not a folder");
}

int exti__fs_check_folder(const char *path, struct exti_error *err)
{
    struct walk w = {.links = 0};
    bool linked;
    size_t n;
    int rc;

    if (*path != '/' && !getcwd(w.rest, sizeof w.rest))
        return exti__fail_io(err, errno, path, "cannot find the current directory");
    n = strlen(w.rest);
    if ((size_t)snprintf(w.rest + n, sizeof w.rest - n, "/%s", path) >= sizeof w.rest - n)
        return exti__fail_io(err, ENAMETOOLONG, path, "cannot follow the path");
    if (lstat("/", &w.st) != 0)
        return exti__fail_io(err, errno, "/", "cannot look up folder");
    w.top = w.st.st_uid;
    rc = check_above(&w, err);
    while (!rc && *w.rest) {
        rc = take_name(&w, &linked, err);
        if (!rc && !linked)
            rc = check_above(&w, err);
    }
    /* The last folder holds the files themselves: sticky does not keep others from adding some. */
    return rc ? rc : exti__posix_check_owner(*w.at ? w.at : "/", &w.st, err);
}
