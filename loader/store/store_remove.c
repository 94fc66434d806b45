#include "loader/store/store_remove.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/os/fs_folder.h"
#include "base/os/fs_lock.h"
#include "base/os/fs_remove.h"
#include "base/os/fs_temp_name.h"
#include "base/path.h"
#include "loader/store/copy_names.h"

bool exti__store_owns(const char *name)
{
    return strcmp(name, EXTI_MANIFEST_FILE) == 0 || strcmp(name, EXTI_LOCK_FILE) == 0 ||
           exti__fs_is_temporary(name);
}

struct others {
    const char *context; /* whose copies are not; "" if none */
    size_t count;
};

static int count_other(void *user, const char *name)
{
    struct others *o = user;

    o->count += !exti__store_owns(name) && !(*o->context && strstr(name, o->context));
    return 0;
}

int exti__store_count_others(const char *dir, const char *context, size_t *count,
                             struct exti_error *err)
{
    struct others o = {context, 0};
    int rc = exti__fs_list(dir, count_other, &o, err);

    if (!rc)
        *count = o.count;
    return rc;
}

int exti__store_remove_file(const char *dir, const char *name, struct exti_error *err)
{
    char path[EXTI_PATH_MAX + EXTI_FILE_NAME_MAX + 2];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    return exti__fs_remove(path, err);
}

static int remove_temporary(void *user, const char *name)
{
    if (exti__fs_is_temporary(name))
        exti__store_remove_file(user, name, NULL);
    return 0;
}

void exti__store_sweep(const char *dir)
{
    exti__fs_list(dir, remove_temporary, (char *)dir, NULL);
}

void exti__store_unlock_removed(const char *dir, struct exti_lock *lock)
{
    bool removed;

    exti__fs_unlock(lock);
    exti__fs_rmdir(dir, &removed, NULL);
}

struct removal {
    const char *dir, *context;
    int rc; /* the first failure */
    struct exti_error err;
};

/* One file that cannot be removed, being in use, does not save the others. */
static void remove_listed(struct removal *r, const char *name)
{
    int rc = exti__store_remove_file(r->dir, name, r->rc ? NULL : &r->err);

    if (!r->rc)
        r->rc = rc;
}

/* Temporary files of a killed process, and copies that it did not come to record. */
static int remove_leftover(void *user, const char *name)
{
    struct removal *r = user;

    if (exti__fs_is_temporary(name) || exti__copy_name_is_of(name, r->context))
        remove_listed(r, name);
    return 0;
}

int exti__store_remove(const char *dir, const struct exti_manifest *m, bool folder,
                       struct exti_error *err)
{
    struct removal r = {.dir = dir, .context = m->name};
    struct exti_error e = {0};
    bool removed;
    int rc;

    if (m->api.copy)
        remove_listed(&r, m->api.copy);
    for (size_t i = 0; i < m->count; i++)
        remove_listed(&r, m->entries[i].copy);
    rc = r.rc ? r.rc : exti__fs_list(dir, remove_leftover, &r, &e);
    if (rc && !r.rc) {
        r.rc = rc;
        r.err = e;
    }
    /* The manifest goes last: a clean-up that was cut short can be repeated while it is there. */
    if (!r.rc)
        r.rc = exti__store_remove_file(dir, EXTI_MANIFEST_FILE, &r.err);
    if (!r.rc)
        r.rc = exti__store_remove_file(dir, EXTI_LOCK_FILE, &r.err);
    if (!r.rc && folder)
        r.rc = exti__fs_rmdir(dir, &removed, &r.err);
    if (r.rc && r.err.os_error == ENOENT) /* the folder itself is gone */
        return 0;
    if (r.rc && err)
        *err = r.err;
    return r.rc;
}
