#include "loader/store/store_open.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/os/fs_boot.h"
#include "base/os/fs_lock.h"
#include "loader/store/store_api.h"
#include "loader/store/store_folder.h"
#include "loader/store/store_policy.h"
#include "loader/store/store_remove.h"
#include "loader/store/store_save.h"

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
     * creation was cut short. */
    if (s->created)
        rc = exti__store_write_name(s, lock, err);
    else
        exti__store_sweep(s->dir);
    if (!rc)
        rc = exti__store_ensure_api(s, source, opts, err);
    if (rc)
        exti__error_file(err, source);
    else if (s->dirty && !s->one_shot)
        rc = exti__store_save(s, err);
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
    *s = (struct exti_store){.sync = opts->sync,
                             .drop_unused = opts->drop_unused,
                             .copy_only = opts->copy_only,
                             .quirks = opts->quirks,
                             .copy_name = opts->copy_name,
                             .user = opts->user};
    pthread_mutex_init(&s->lock, NULL);
    exti__fs_boot(s->boot, sizeof s->boot);
    rc = exti__store_make_folder(s, opts->dir, &lock, err);
    if (!rc) {
        rc = open_locked(s, opts, &lock, err);
        if (rc)
            exti__store_abandon(s, &lock);
        if (rc && (s->made_folder || s->one_shot))
            exti__store_unlock_removed(s->dir, &lock);
        else
            exti__fs_unlock(&lock);
    }
    if (rc) {
        exti__error_file(err, s->dir);
        exti__store_free(s);
    }
    return rc;
}
