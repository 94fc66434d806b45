/* Making one copy: a plan, then the file, then its entry. */
#include "loader/store/store_make.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/os/fs_id.h"
#include "base/path.h"
#include "loader/resolve/captured.h"
#include "loader/store/manifest_api.h"
#include "loader/store/stable_abi.h"
#include "loader/store/store_entry.h"
#include "loader/store/store_fresh.h"
#include "loader/store/store_graph.h"
#include "loader/store/store_names.h"
#include "loader/store/store_pattern.h"
#include "loader/store/store_save.h"
#include "loader/store/store_write.h"
#include "loader/store/target.h"

static int ensure_stable_abi(struct exti_store *s, const char *source, const struct exti_image *im,
                             struct exti_error *err);

void exti__making_clear(struct exti_making *m)
{
    exti__edits_free(&m->edits);
    exti_image_free(m->im);
    m->edits = (struct exti_edits){0};
    m->im = NULL;
}

int exti__store_plan(struct exti_store *s, const struct exti_copy_request *r,
                     struct exti_making *out, struct exti_error *err)
{
    const struct exti_entry *old = exti__manifest_find(&s->manifest, r->source);
    struct exti_entry *e = &out->e;
    char name[EXTI_FILE_NAME_MAX + 1];
    int rc = exti__fs_id(r->source, &e->id, err);

    e->marks.made = true;
    e->symbolic = r->symbolic || (old && old->symbolic);
    if (old && !exti__store_needs_stay(s, r->first, old))
        exti__store_drop_graph(s);
    if (!rc)
        rc = exti__image_cache_get(&s->images, r->source, &e->id, &out->im, err);
    if (rc)
        return rc;
    e->symbolic = e->symbolic || (!s->copy_only && exti__is_captured(out->im));
    exti__store_propose_name(s, r->source, name);
    rc = exti__target_check(&s->manifest.target, out->im, err);
    if (!rc)
        rc = ensure_stable_abi(s, r->source, out->im, err);
    if (!rc)
        rc = exti__store_check_name(s, r->source, name, err);
    if (!rc)
        rc = exti__store_entry(s, r, name, out->im, e, err);
    if (!rc)
        rc = exti__edits_copy(&s->manifest, e, out->im, &s->renames, &out->edits, err);
    if (!rc)
        rc = exti__store_edits(&out->edits, e, err);
    exti__image_cache_take(&s->images, out->im);
    if (rc) {
        exti__entry_clear(e);
        exti__making_clear(out);
        exti__error_file(err, r->source);
    }
    return rc;
}

int exti__store_make(struct exti_store *s, const struct exti_copy_request *r,
                     struct exti_error *err)
{
    struct exti_making m = {0};
    const struct exti_entry *old;
    struct exti_pattern_turn turn;
    const bool made = exti__pattern_use(s, r, &m.e, &turn);
    int rc = made ? 0 : exti__store_plan(s, r, &m, err);

    if (rc) {
        exti__pattern_planned(&turn);
        return rc;
    }
    old = exti__manifest_find(&s->manifest, r->source);
    s->replaced = s->replaced || (old && strcmp(old->copy, m.e.copy) == 0);
    if (!made)
        rc = exti__store_write(s, m.im, &m.edits, r, &m.e, err);
    exti__pattern_planned(&turn);
    exti__image_cache_give(&s->images, m.im);
    m.im = NULL;
    if (!rc)
        rc = exti__manifest_put(&s->manifest, &m.e, err);
    if (!rc)
        s->dirty = true;
    else
        exti__error_file(err, r->source);
    /* Saved at once: the context can have but one copy of python3.dll, and another process might
     * choose another file for it. */
    if (!rc && exti__manifest_is_stable_abi(&s->manifest, exti__base_name(r->source)) &&
        !s->one_shot)
        rc = exti__store_save(s, err);
    exti__entry_clear(&m.e);
    exti__making_clear(&m);
    return rc;
}

/* Copies python3.dll first, if the file `im` needs that.  A context has a single copy of it, so
 * that what importers name does not depend on what was copied before. */
static int ensure_stable_abi(struct exti_store *s, const char *source, const struct exti_image *im,
                             struct exti_error *err)
{
    const struct exti_manifest *m = &s->manifest;
    const struct exti_entry *e = exti__manifest_stable_abi(m);
    const char *wanted = NULL;
    char *path;
    int rc;

    if (exti__manifest_is_stable_abi(m, exti__base_name(source))) {
        if (!e || strcmp(e->source, source) == 0)
            return 0;
        return exti__fail(
            err, EXTI_E_ARG, EXTI_NO_OFFSET,
            "the context already has a copy of python3.dll, made from %s, and can have only one",
            e->source);
    }
    rc = exti__stable_abi_wanted(m, im, &wanted, err);
    if (rc || !wanted)
        return rc;
    rc = exti__stable_abi_source(m, wanted, &path, err);
    if (rc)
        return rc;
    if (!exti__store_is_fresh(s, path, e, false))
        rc = exti__store_make(
            s, &(struct exti_copy_request){.source = path, .first = path, .root = true}, err);
    exti__free(path);
    return rc;
}
