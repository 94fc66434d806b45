#include "loader/store/store_copy.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/os/fs_lock.h"
#include "loader/store/store_ensure.h"
#include "loader/store/store_graph.h"
#include "loader/store/store_lock.h"
#include "loader/store/store_make.h"
#include "loader/store/store_save.h"
#include "loader/store/store_trace.h"

static int copy_locked(struct exti_store *s, const char *source, bool symbolic,
                       struct exti_error *err)
{
    struct exti_lock lock;
    int rc;

    if (exti__store_is_whole(s, source, symbolic))
        return 0;
    rc = exti__store_lock(s, &lock, err);
    if (rc)
        return rc;
    rc = exti__store_reload(s, err);
    if (!rc && !exti__store_is_whole(s, source, symbolic)) {
        rc = exti__store_ensure(s, source, symbolic, err);
        rc = exti__store_save_made(s, rc, err);
    }
    exti__fs_unlock(&lock);
    return rc;
}

/* Makes a copy that is there again: to be symbolic, or else full. */
static int make_again(struct exti_store *s, const char *source, bool symbolic,
                      struct exti_error *err)
{
    const struct exti_entry *e;
    struct exti_lock lock;
    int rc;

    pthread_mutex_lock(&s->lock);
    rc = exti__store_lock(s, &lock, err);
    if (!rc) {
        rc = exti__store_reload(s, err);
        e = rc ? NULL : exti__manifest_find(&s->manifest, source);
        if (e && (symbolic ? !e->symbolic : e->left_out.count > 0)) {
            rc = exti__store_make(
                s,
                &(struct exti_copy_request){.source = source,
                                            .first = exti__store_first_user(s, source),
                                            .root = e->takes_api,
                                            .symbolic = symbolic,
                                            .full = !symbolic},
                err);
            rc = exti__store_save_made(s, rc, err);
        }
        exti__fs_unlock(&lock);
    }
    pthread_mutex_unlock(&s->lock);
    return rc;
}

int exti__store_make_symbolic(struct exti_store *s, const char *source, struct exti_error *err)
{
    return make_again(s, source, true, err);
}

int exti__store_make_full(struct exti_store *s, const char *source, struct exti_error *err)
{
    return make_again(s, source, false, err);
}

int exti__store_copy(struct exti_store *s, const char *original, bool symbolic, const char **copy,
                     const char **source, struct exti_error *err)
{
    char *real = NULL;
    int rc = exti__store_trace(s, original, &real, err);

    if (rc) {
        exti__error_file(err, original);
        return rc;
    }
    pthread_mutex_lock(&s->lock);
    if (strcmp(real, s->manifest.api.source) != 0)
        rc = copy_locked(s, real, symbolic, err);
    else
        s->drop_unused = false;
    if (!rc)
        rc =
            exti__store_export_paths(s, exti__manifest_find(&s->manifest, real), copy, source, err);
    pthread_mutex_unlock(&s->lock);
    if (rc)
        exti__error_name_original(original, real, err);
    exti__free(real);
    return rc;
}
