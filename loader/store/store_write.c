#include "loader/store/store_write.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/os/fs_id.h"
#include "base/os/fs_owner.h"
#include "base/path.h"
#include "loader/process/original_pages.h"
#include "loader/rewrite/rewrite.h"
#include "loader/store/copy_identity.h"
#include "loader/store/store_pattern.h"

/* Whether the file `path`, and not one behind a link, is there and as it should be, and nobody else
 * can change it. */
static bool is_written(const struct exti_store *s, const struct exti_rewritten *r, const char *path)
{
    struct exti_file_id id;
    bool trusted;
    uint64_t differs;

    return !exti__fs_own_id(path, &id, &trusted, NULL) && (trusted || s->trust_dir) &&
           !exti__rewritten_compare(r, path, &differs, NULL) && differs == EXTI_NO_OFFSET;
}

int exti__store_write(const struct exti_store *s, const struct exti_image *im,
                      const struct exti_edits *edits, const struct exti_copy_request *request,
                      struct exti_entry *e, struct exti_error *err)
{
    char *path = exti__path_join(s->dir, e->copy);
    const bool full = !s->lean || (request && request->full) || !exti__can_map_code(e->source);
    struct exti_rewritten r;
    bool trusted;
    int rc = path ? exti__rewrite_image(e->source, im, path, &edits->opts,
                                        full ? EXTI_FULL : EXTI_LEAN, &r, err)
                  : exti__fail_nomem(err);

    if (rc) {
        exti__free(path);
        return rc;
    }
    if (!exti__fs_same_version(&r.id, &e->id))
        rc = exti__fail_io(err, ESTALE, e->source, "changed while it was being copied; try again");
    /* Hashing takes about as long as writing, so other copies are hashed when they turn out to be
     * used again: see exti__store_copy_state. */
    else if (s->sync)
        rc = exti__copy_hash(r.copy.image.p, r.copy.size, &r.left_out, e->copy_hash, err);
    if (!rc && request && !request->full && edits->opts.id)
        exti__pattern_learn(s, request, edits->opts.id, e, &r);
    if (!rc && (s->sync || !is_written(s, &r, path)))
        rc = exti__rewritten_write(&r, path, s->sync, err);
    if (!rc)
        rc = exti__fs_own_id(path, &e->copy_id, &trusted, err);
    e->left_out = r.left_out;
    e->unloaded = r.unloaded;
    e->synced = s->sync;
    memcpy(e->boot, s->boot, sizeof e->boot);
    exti__rewritten_free(&r);
    exti__free(path);
    return rc;
}
