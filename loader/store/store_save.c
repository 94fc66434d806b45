/* The manifest in memory and the one on disk, which other processes write too. */
#include "loader/store/store_save.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/os/fs_id.h"
#include "base/os/fs_lock.h"
#include "base/path.h"
#include "loader/resolve/absent.h"
#include "loader/store/store_graph.h"
#include "loader/store/store_lock.h"

/* Saving takes time in proportion to the entries, so it may take at most this fraction of the time.
 * What a kill loses in between is only done again. */
#define SAVE_FRACTION 30

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int manifest_file_id(const struct exti_store *s, struct exti_file_id *id)
{
    char *path = exti__path_join(s->dir, EXTI_MANIFEST_FILE);
    int rc = path ? exti__fs_id(path, id, NULL) : EXTI_E_NOMEM;

    exti__free(path);
    return rc;
}

int exti__store_load_manifest(const struct exti_store *s, struct exti_manifest *out,
                              struct exti_error *err)
{
    return s->trust_dir ? exti__manifest_read(s->dir, out, err)
                        : exti__manifest_read_trusted(s->dir, out, err);
}

int exti__store_save(struct exti_store *s, struct exti_error *err)
{
    struct exti_error e = {0};
    int64_t start = now_ns();
    int rc = exti__manifest_write(s->dir, &s->manifest, s->sync, &e);

    /* On a read-only directory no copy can have been written either.  The entries that changed
     * are of copies that were checked after a reboot and found to be right. */
    if (rc && e.os_error != EROFS && e.os_error != EACCES) {
        if (err)
            *err = e;
        return rc;
    }
    s->dirty = s->replaced = false;
    s->saved_at_ns = now_ns();
    s->save_cost_ns = s->saved_at_ns - start;
    manifest_file_id(s, &s->manifest_id);
    return 0;
}

/* Of a copy that has been replaced the file has a wrong description, which others would believe:
 * that is never put off. */
int exti__store_save_if_due(struct exti_store *s, struct exti_error *err)
{
    if (!s->dirty || s->one_shot ||
        (!s->sync && !s->replaced && now_ns() - s->saved_at_ns < SAVE_FRACTION * s->save_cost_ns))
        return 0;
    return exti__store_save(s, err);
}

int exti__store_save_made(struct exti_store *s, int rc, struct exti_error *err)
{
    int saved;

    if (rc && !s->replaced)
        return rc;
    saved = exti__store_save_if_due(s, rc ? NULL : err);
    return rc ? rc : saved;
}

static void exchange_entries(struct exti_manifest *a, struct exti_manifest *b)
{
    struct exti_manifest was = *a;

    a->entries = b->entries;
    a->count = b->count;
    a->cap = b->cap;
    b->entries = was.entries;
    b->count = was.count;
    b->cap = was.cap;
}

/* Another process has changed where needs are looked up: adopts that. */
static void adopt_search(struct exti_store *s, struct exti_manifest *fresh)
{
    exti__free(s->manifest.search);
    s->manifest.search = fresh->search;
    s->manifest.resolution = fresh->resolution;
    fresh->search = NULL;
    exti__store_drop_graph(s);
}

int exti__store_reload(struct exti_store *s, struct exti_error *err)
{
    struct exti_error e = {0};
    struct exti_manifest fresh;
    struct exti_file_id id = {0};
    int rc = 0;

    if (s->one_shot || (!manifest_file_id(s, &id) && exti__fs_same_version(&id, &s->manifest_id)))
        return 0;
    rc = exti__store_load_manifest(s, &fresh, &e);
    if (rc == EXTI_E_IO && e.os_error == ENOENT)
        return exti__store_fail_gone(s, "cleaned meanwhile", err);
    if (exti__is_unseen(rc, &e) || rc == EXTI_E_TRUST) {
        if (err)
            *err = e;
        return rc;
    }
    if (rc)
        return exti__fail(err, EXTI_E_CHECK, EXTI_NO_OFFSET,
                          "%s has been damaged meanwhile; open it again", s->dir);
    if (fresh.generation != s->manifest.generation || strcmp(fresh.name, s->manifest.name) != 0) {
        exti__manifest_clear(&fresh);
        return exti__store_fail_gone(s, "given a new API library by another process", err);
    }
    /* Saving would describe the API copy as it was. */
    if (fresh.api.withheld != s->manifest.api.withheld) {
        exti__manifest_clear(&fresh);
        return exti__store_fail_gone(s, "made again for another purpose by another process", err);
    }
    rc = exti__manifest_reserve(&fresh, s->manifest.count, err);
    if (rc) {
        exti__manifest_clear(&fresh);
        return rc;
    }
    for (size_t i = 0; i < s->manifest.count; i++) {
        struct exti_entry *mine = &s->manifest.entries[i];

        if (!exti__manifest_find(&fresh, mine->source))
            exti__manifest_put(&fresh, mine, NULL);
    }
    /* The API's entry is the same in both.  Others read it without the lock, so it stays where
     * it is. */
    exchange_entries(&s->manifest, &fresh);
    if (fresh.resolution != s->manifest.resolution)
        adopt_search(s, &fresh);
    exti__manifest_clear(&fresh);
    s->manifest_id = id;
    return 0;
}

int exti__store_flush(struct exti_store *s, struct exti_error *err)
{
    struct exti_lock lock;
    int rc = 0;

    pthread_mutex_lock(&s->lock);
    if (s->dirty && !s->one_shot) {
        rc = exti__store_lock(s, &lock, err);
        if (!rc) {
            rc = exti__store_reload(s, err);
            if (!rc)
                rc = exti__store_save(s, err);
            exti__fs_unlock(&lock);
        }
    }
    pthread_mutex_unlock(&s->lock);
    return rc;
}
