/* The manifest's entry for one copy. */
#include "loader/store/store_entry.h"

#include "base/mem.h"
#include "loader/resolve/stable_abi_name.h"
#include "loader/store/store_fresh.h"
#include "loader/store/store_needs.h"

int exti__store_entry(struct exti_store *s, const struct exti_copy_request *r, const char *name,
                      const struct exti_image *im, struct exti_entry *e, struct exti_error *err)
{
    int rc;

    e->generation = s->manifest.generation;
    e->resolution = s->manifest.resolution;
    e->withheld = exti__store_withholds(s, im->format);
    rc = exti__manifest_check_text(r->source, "path", err);
    if (!rc)
        rc = exti__manifest_check_text(name, "copy's name", err);
    if (!rc)
        rc = exti__manifest_check_text(im->info.id, "SONAME", err);
    if (!rc)
        rc = exti__copy_text(&e->source, r->source, err);
    if (!rc)
        rc = exti__copy_text(&e->copy, name, err);
    if (!rc)
        rc = exti__copy_text(&e->build_id, im->info.build_id, err);
    if (!rc)
        rc = exti__copy_text(&e->source_name, im->info.id, err);
    if (!rc)
        rc = exti__store_quirks(s, r->source, im, e, err);
    if (!rc)
        rc = exti__store_needs(s, r, e, err);
    for (size_t i = 0; i < e->need_count && !rc; i++) {
        rc = exti__manifest_check_text(e->needs[i].name, "needed library's name", err);
        if (!rc)
            rc = exti__manifest_check_text(e->needs[i].file, "needed library's path", err);
    }
    return rc;
}

int exti__store_edits(const struct exti_edits *edits, struct exti_entry *e, struct exti_error *err)
{
    int rc = 0;

    e->symbolic = (edits->opts.flags & EXTI_RW_SYMBOLIC) != 0;
    for (size_t i = 0; i < edits->opts.needed_count && !e->stable_abi_copy && !rc; i++) {
        const struct exti_needed *n = &edits->opts.needed[i];

        if (n->from && exti__stable_abi_name(n->from))
            rc = exti__copy_text(&e->stable_abi_copy, n->to, err);
    }
    return rc ? rc : exti__edits_json(edits, &e->edits, err);
}
