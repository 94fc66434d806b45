#include "loader/store/store_state.h"

#include <string.h>

#include "base/mem.h"
#include "base/os/fs_id.h"
#include "base/path.h"
#include "loader/resolve/absent.h"
#include "loader/store/copy_identity.h"

/* How the entry stands to its source: never EXTI_COPY_MISSING. */
static enum exti_copy_state source_state(const struct exti_manifest *m, const struct exti_entry *e)
{
    struct exti_error why = {0};
    struct exti_file_id id;
    const int rc = exti__fs_id(e->source, &id, &why);

    if (rc)
        return exti__is_unseen(rc, &why) ? EXTI_COPY_UNKNOWN : EXTI_COPY_ORPHAN;
    return exti__fs_same_version(&id, &e->id) && e->generation == m->generation ? EXTI_COPY_FRESH
                                                                                : EXTI_COPY_STALE;
}

enum exti_copy_state exti__entry_state(const char *copy, const struct exti_manifest *m,
                                       const struct exti_entry *e)
{
    enum exti_copy_state state = source_state(m, e);

    return state == EXTI_COPY_FRESH ? exti__copy_reported_state(copy, e) : state;
}

/* A copy that another process has made, so that it is used again. */
static bool needs_hash(const struct exti_store *s, const struct exti_entry *e)
{
    return s->hashes && !e->marks.made && !*e->copy_hash;
}

enum exti_copy_state exti__store_copy_state(struct exti_store *s, const struct exti_entry *e)
{
    enum exti_copy_state state = source_state(&s->manifest, e);
    struct exti_file_id now;
    char *copy;

    if (state != EXTI_COPY_FRESH)
        return state;
    copy = exti__path_join(s->dir, e->copy);
    if (!copy || !exti__copy_is_recorded(copy, e, s->trust_dir, &now)) {
        state = EXTI_COPY_MISSING;
    } else if (!exti__copy_same_id(&now, &e->copy_id) || needs_hash(s, e)) {
        struct exti_entry *recorded = exti__manifest_find(&s->manifest, e->source);

        recorded->copy_id = now;
        if (needs_hash(s, e))
            exti__copy_hash_file(copy, recorded, &now, recorded->copy_hash);
        s->dirty = true;
    }
    exti__free(copy);
    return state;
}

bool exti__store_may_be_torn(const struct exti_store *s, const struct exti_entry *e)
{
    return !e->copy_id.inode || (!e->synced && (!s->boot[0] || strcmp(e->boot, s->boot) != 0));
}
