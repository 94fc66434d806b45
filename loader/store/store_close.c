#include <errno.h>
#include <string.h>

#include "base/os/fs_lock.h"
#include "loader/store/store_lock.h"
#include "loader/store/store_open.h"
#include "loader/store/store_pattern.h"
#include "loader/store/store_remove.h"
#include "loader/store/store_save.h"

/* Removes the directory if it has the API copy only.  Other processes may have copied into it
 * and not recorded that yet, or cleaned it and begun a context of their own there: then it
 * stays. */
static int drop_if_unused(struct exti_store *s, struct exti_error *err)
{
    size_t files = 0;
    struct exti_manifest now = {0};
    struct exti_lock lock;
    int rc;

    if (exti__store_lock(s, &lock, NULL))
        return 0;
    rc = exti__manifest_read(s->dir, &now, NULL);
    if (!rc && strcmp(now.name, s->manifest.name) == 0)
        rc = exti__store_count_others(s->dir, "", &files, NULL);
    rc = !rc && files == 1 ? exti__store_remove(s->dir, &now, true, err) : 0;
    exti__manifest_clear(&now);
    exti__store_unlock_removed(s->dir, &lock);
    return rc;
}

/* Windows cannot remove files that are loaded; the next process that makes a private directory
 * removes them. */
static int remove_private(const struct exti_store *s, struct exti_error *err)
{
    struct exti_error e = {0};
    int rc = exti__store_remove(s->dir, &s->manifest, true, &e);

    if (!rc || e.os_error == EBUSY)
        return 0;
    if (err)
        *err = e;
    return rc;
}

int exti__store_close(struct exti_store *s, bool unloaded, struct exti_error *err)
{
    int rc;

    if (unloaded && exti__patterns_give_files(s))
        rc = 0;
    else if (!s->stays)
        rc = remove_private(s, err);
    else if (s->drop_unused && s->made_folder && !s->manifest.count)
        rc = drop_if_unused(s, err);
    else
        rc = exti__store_flush(s, err);
    exti__patterns_release(s);
    exti__store_free(s);
    return rc;
}
