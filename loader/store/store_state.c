#include "loader/store/store_state.h"

#include <string.h>

#include "base/mem.h"
#include "base/os/fs_id.h"
#include "base/path.h"

bool exti__same_version(const struct exti_file_id *a, const struct exti_file_id *b)
{
    return a->size == b->size && a->mtime_ns == b->mtime_ns && a->inode == b->inode;
}

enum exti_copy_state exti__entry_state(const char *dir, const struct exti_manifest *m,
                                       const struct exti_entry *e)
{
    struct exti_file_id id;
    char *copy;
    int rc;

    if (exti__fs_id(e->source, &id, NULL))
        return EXTI_COPY_ORPHAN;
    if (!exti__same_version(&id, &e->id) || e->generation != m->generation)
        return EXTI_COPY_STALE;
    copy = exti__path_join(dir, e->copy);
    rc = copy ? exti__fs_id(copy, &id, NULL) : EXTI_E_NOMEM;
    exti__free(copy);
    return rc || id.size != e->copy_size || id.mtime_ns != e->copy_mtime_ns ? EXTI_COPY_MISSING
                                                                            : EXTI_COPY_FRESH;
}

bool exti__store_may_be_torn(const struct exti_store *s, const struct exti_entry *e)
{
    return !e->synced && (!s->boot[0] || strcmp(e->boot, s->boot) != 0);
}
