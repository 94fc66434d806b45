#include "loader/store/store_open.h"

#include <errno.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/os/fs_boot.h"
#include "base/os/fs_folder.h"
#include "base/os/fs_lock.h"
#include "loader/process/fork_guard.h"
#include "loader/process/original_pages.h"
#include "loader/store/store_api.h"
#include "loader/store/store_folder.h"
#include "loader/store/store_pattern.h"
#include "loader/store/store_policy.h"
#include "loader/store/store_remove.h"
#include "loader/store/store_save.h"

/* What is synced in a folder is lost all the same if the folder's own name is.  An earlier process
 * may have made it; then we may not be allowed to read the folder above. */
static int sync_name(const struct exti_store *s, struct exti_error *err)
{
    struct exti_error e = {0};
    int rc = exti__fs_sync_parent(s->dir, &e);

    if (rc && e.os_error == EACCES && !s->made_folder)
        return 0;
    if (rc && err)
        *err = e;
    return rc;
}

static int open_locked(struct exti_store *s, const struct exti_store_opts *opts,
                       const struct exti_lock *lock, struct exti_error *err)
{
    char *source = NULL;
    int rc = exti__store_read_manifest(s, opts->name, err);

    if (!rc)
        rc = exti__store_choose_api(s, opts->api_library, &source, err);
    if (rc)
        return rc;
    /* The name comes before the first copy, so that the next process can finish a directory whose
     * creation was cut short.  It is on the disk by then: after a power loss it may be all that
     * tells whose the copies are. */
    if (s->created)
        rc = exti__store_write_name(s, lock, err);
    else
        exti__store_sweep(s->dir);
    if (!rc)
        rc = exti__store_ensure_api(s, source, opts, err);
    if (rc) {
        exti__error_file(err, source);
        if (!s->created)
            exti__store_save_made(s, rc, NULL);
    } else if (s->dirty && !s->one_shot)
        rc = exti__store_save(s, err);
    if (!rc && s->sync && !s->one_shot)
        rc = sync_name(s, err);
    exti__free(source);
    return rc;
}

int exti__store_open(struct exti_store *s, const struct exti_store_opts *opts,
                     struct exti_error *err)
{
    struct exti_lock lock;
    int rc;

    if (opts->name && (rc = exti__context_name_check(opts->name, err)))
        return rc;
    rc = exti__store_check_rules(opts, err);
    if (rc)
        return rc;
    *s = (struct exti_store){.one_shot = !opts->dir || opts->one_shot,
                             .stays = opts->dir != NULL,
                             .sync = opts->sync,
                             .drop_unused = opts->drop_unused,
                             .copy_only = opts->copy_only,
                             .withhold = opts->withhold,
                             .trust_dir = opts->trust_dir,
                             .quirks = opts->quirks,
                             .is_copy = opts->is_copy,
                             .copy_name = opts->copy_name,
                             .user = opts->user};
    pthread_mutex_init(&s->lock, NULL);
    /* Who only copies does so for other processes. */
    s->lean = s->withhold && !opts->full && (s->copy_only || exti__can_map_originals());
    exti__fs_boot(s->boot, sizeof s->boot);
    s->forks = exti__forks_begun();
    exti__patterns_hold(s);
    rc = exti__store_make_folder(s, opts->dir, &lock, err);
    if (!rc) {
        /* For those who load copies; and who cannot write to the lock, or make a file beside it,
         * cannot save a hash either. */
        s->hashes = !s->copy_only && !s->one_shot && exti__fs_lock_can_write(&lock) &&
                    exti__fs_folder_can_write(s->dir);
        s->adapts = s->hashes;
        rc = open_locked(s, opts, &lock, err);
        if (rc)
            exti__store_abandon(s, &lock);
        if (rc && (s->made_folder || !s->stays))
            exti__store_unlock_removed(s->dir, &lock);
        else
            exti__fs_unlock(&lock);
    }
    if (rc) {
        exti__error_file(err, s->dir);
        exti__patterns_release(s);
        exti__store_free(s);
    }
    return rc;
}
