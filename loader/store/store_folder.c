#include "loader/store/store_folder.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/os/fs_folder.h"
#include "base/os/fs_id.h"
#include "base/os/fs_lock.h"
#include "base/os/fs_owner.h"
#include "base/os/fs_read.h"
#include "base/os/fs_remove.h"
#include "base/path.h"
#include "loader/store/store_lock.h"
#include "loader/store/store_remove.h"
#include "loader/store/store_save.h"

#define ATTEMPTS 100

static bool is_own_folder(const struct exti_store *s)
{
    return s->made_folder || !s->stays;
}

static int make_folder(struct exti_store *s, const char *dir, struct exti_error *err)
{
    int rc;

    if (!dir)
        return exti__fs_mkdtemp(&s->dir, err);
    if (!*dir)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "the context directory's name is empty");
    rc = exti__fs_mkdir(dir, &s->made_folder, err);
    if (!rc && s->one_shot && !s->made_folder)
        return exti__fail_io(err, EEXIST, dir, "cannot make a new folder");
    return rc ? rc : exti__fs_realpath(dir, &s->dir, err);
}

/* Checked before anything in it is believed.  What its path leads to is checked with the links in
 * it, so s->dir is the same folder. */
static int check_folder(const struct exti_store *s, const char *dir, struct exti_error *err)
{
    return s->trust_dir ? 0 : exti__fs_check_folder(dir ? dir : s->dir, err);
}

/* Retries: another process may give up its attempt at the same folder, and remove it, before we
 * have locked it. */
int exti__store_make_folder(struct exti_store *s, const char *dir, struct exti_lock *lock,
                            struct exti_error *err)
{
    struct exti_error e;
    bool removed;
    int rc = EXTI_E_IO;

    for (int tries = 0; rc && tries < ATTEMPTS; tries++) {
        e = (struct exti_error){0};
        exti__free(s->dir);
        s->dir = NULL;
        rc = make_folder(s, dir, &e);
        if (!rc)
            rc = check_folder(s, dir, &e);
        if (!rc)
            rc = exti__store_lock(s, lock, &e);
        if (e.os_error != ENOENT)
            break;
    }
    if (rc && s->dir && is_own_folder(s))
        exti__fs_rmdir(s->dir, &removed, NULL);
    if (rc && err)
        *err = e;
    return rc;
}

/* Begins a context in a folder that has nothing of anyone else's, or goes on with one that was
 * begun: its name, from the lock file, is in s->manifest then.  Other programs have files called
 * .lock too. */
static int start_manifest(struct exti_store *s, const char *name, struct exti_error *err)
{
    size_t others = 0;
    int rc = exti__store_count_others(s->dir, s->manifest.name, &others, err);

    if (rc)
        return rc;
    if (others)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET,
                          "has other files in it and no " EXTI_MANIFEST_FILE
                          "; name a new or empty folder");
    if (s->manifest.name[0])
        return 0;
    s->created = true;
    if (name) {
        memcpy(s->manifest.name, name, strlen(name) + 1);
        return 0;
    }
    return exti__context_name_make(s->manifest.name, err);
}

/* Whether a power loss has torn the manifest: then it is empty or begins with a zero. */
static bool is_torn(const struct exti_store *s)
{
    char *path = exti__path_join(s->dir, EXTI_MANIFEST_FILE), *text = NULL;
    size_t n = 0;
    bool torn = path && !exti__fs_read(path, SIZE_MAX / 2, &text, &n, NULL) && !text[0];

    exti__free(text);
    exti__free(path);
    return torn;
}

int exti__store_read_manifest(struct exti_store *s, const char *name, struct exti_error *err)
{
    struct exti_error e = {0};
    int rc = exti__store_load_manifest(s, &s->manifest, &e);
    bool missing = rc == EXTI_E_IO && e.os_error == ENOENT;
    bool lacks_manifest = missing || rc == EXTI_E_FORMAT, named;

    if (lacks_manifest && exti__store_locked_name(s->dir, s->manifest.name, err))
        return EXTI_E_NOMEM;
    named = lacks_manifest && s->manifest.name[0];
    if (missing || (rc == EXTI_E_FORMAT && !named && is_torn(s)))
        rc = start_manifest(s, name, err);
    else if (named)
        rc = 0;
    else if (rc && err)
        *err = e;
    if (!rc && name && strcmp(name, s->manifest.name) != 0)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET,
                          "is the context '%s' already, not '%s'; omit the name or use another "
                          "directory",
                          s->manifest.name, name);
    return rc;
}

void exti__store_abandon(struct exti_store *s, const struct exti_lock *lock)
{
    const bool own_folder = is_own_folder(s);
    bool removed;

    if (s->created)
        exti__store_remove(s->dir, &s->manifest, own_folder, NULL);
    else if (lock->made)
        exti__store_remove_file(s->dir, EXTI_LOCK_FILE, NULL);
    if (own_folder && !s->created)
        exti__fs_rmdir(s->dir, &removed, NULL);
}

int exti__store_write_name(const struct exti_store *s, const struct exti_lock *lock,
                           struct exti_error *err)
{
    char line[EXTI_NAME_MAX + 2];
    int rc;

    snprintf(line, sizeof line, "%s\n", s->manifest.name);
    rc = exti__fs_lock_note(lock, line, !s->one_shot, err);
    if (rc)
        exti__error_file(err, s->dir);
    return rc;
}
