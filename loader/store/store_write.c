#include "loader/store/store_write.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/os/fs_id.h"
#include "base/os/fs_map.h"
#include "base/path.h"
#include "loader/rewrite/rewrite.h"
#include "loader/store/store_state.h"

/* Whether the file `path` holds exactly these bytes. */
static bool has_content(const char *path, const uint8_t *p, size_t n)
{
    struct exti_mapping m;
    bool same;

    if (exti__fs_map(path, &m, NULL, NULL))
        return false;
    same = m.n == n && memcmp(m.p, p, n) == 0;
    exti__fs_unmap(&m);
    return same;
}

int exti__store_write(const struct exti_store *s, const struct exti_image *im,
                      const struct exti_edits *edits, struct exti_entry *e, struct exti_error *err)
{
    char *path = exti__path_join(s->dir, e->copy);
    struct exti_rewritten r;
    struct exti_file_id id;
    int rc =
        path ? exti__rewrite_image(e->source, im, &edits->opts, &r, err) : exti__fail_nomem(err);

    if (rc) {
        exti__free(path);
        return rc;
    }
    if (!exti__same_version(&r.id, &e->id))
        rc = exti__fail_io(err, ESTALE, e->source, "changed while it was being copied; try again");
    else if (s->sync || !has_content(path, r.image.p, r.size))
        rc = exti__rewritten_write(&r, path, s->sync, err);
    if (!rc)
        rc = exti__fs_id(path, &id, err);
    if (!rc)
        e->copy_mtime_ns = id.mtime_ns;
    e->copy_size = r.size;
    e->synced = s->sync;
    memcpy(e->boot, s->boot, sizeof e->boot);
    exti__rewritten_free(&r);
    exti__free(path);
    return rc;
}
