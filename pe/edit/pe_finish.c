/* Finishes the plan: headers as patches, the tail, and the checksum over everything. */
#include "pe/edit/pe_finish.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "pe/edit/pe_checksum.h"

enum { OPTIONAL_CHECKSUM = 64 };

/* Patches only runs of bytes that differ, so that the plan names nothing that does not change. */
static int put_head(struct pe_edit *e, struct exti_error *err)
{
    const uint8_t *old = e->f->file.p, *p = e->head.p;
    const size_t size = e->grow_by ? (size_t)e->grow_at : e->head.n;

    for (size_t i = 0, end; i < size; i = end) {
        int rc;

        for (end = i; end < size && p[end] != old[end]; end++)
            ;
        rc = end > i ? exti__plan_patch(e->plan, i, p + i, end - i, "headers", err) : 0;
        if (rc)
            return rc;
        end += end == i;
    }
    return 0;
}

/* The tail replaces the end of the file, so patches of that part are applied to the tail. */
static int sink_patches(struct pe_edit *e, struct exti_error *err)
{
    struct exti_plan *plan = e->plan;
    const uint64_t from = plan->tail_offset;

    for (size_t i = 0; i < plan->count; i++) {
        struct exti_patch *patch = &plan->patches[i];
        const uint8_t *bytes = plan->data.p + patch->data;
        uint64_t end = patch->offset + patch->size;
        size_t skip = patch->offset < from ? (size_t)(from - patch->offset) : 0;
        int rc;

        if (end <= from)
            continue;
        rc = exti__buf_patch(&plan->tail, (size_t)(patch->offset + skip - from + e->grow_by),
                             bytes + skip, patch->size - skip, err);
        if (rc)
            return rc;
        patch->size = skip;
        if (patch->offset > from)
            patch->offset = from;
    }
    return 0;
}

static int put_tail(struct pe_edit *e, struct exti_error *err)
{
    const struct exti_span file = e->f->file;
    struct exti_plan *plan = e->plan;
    uint64_t from = e->keep;
    int rc = 0;

    if (e->grow_by)
        from = e->grow_at;
    else if (!e->added.n && e->keep < file.n)
        from = e->keep - 1; /* a tail cuts the copy short, and cannot be empty */
    else if (!e->added.n)
        return 0;
    plan->tail_offset = from;
    if (e->grow_by)
        rc = exti__buf_append(&plan->tail, e->head.p + e->grow_at, (size_t)e->grow_by, err);
    if (!rc)
        rc = exti__buf_append(&plan->tail, file.p + from, (size_t)(e->keep - from), err);
    if (!rc)
        rc = exti__buf_zeros(&plan->tail, (size_t)e->added_pad, err);
    if (!rc)
        rc = exti__buf_append(&plan->tail, e->added.p, e->added.n, err);
    return rc ? rc : sink_patches(e, err);
}

/* Sums the copy piecewise: kept bytes and patches in turn, then the tail. */
static int checksum_of_copy(const struct pe_edit *e, uint64_t field, uint32_t *out,
                            struct exti_error *err)
{
    const struct exti_span file = e->f->file;
    const struct exti_plan *plan = e->plan;
    struct exti_span *parts = exti__calloc(2 * plan->count + 2, sizeof *parts);
    uint64_t at = 0, end = plan->tail.n ? plan->tail_offset : file.n;
    size_t n = 0;

    if (!parts)
        return exti__fail_nomem(err);
    for (size_t i = 0; i < plan->count; i++) {
        const struct exti_patch *patch = &plan->patches[i];

        parts[n++] = exti__span(file.p + at, (size_t)(patch->offset - at));
        parts[n++] = exti__span(plan->data.p + patch->data, patch->size);
        at = patch->offset + patch->size;
    }
    parts[n++] = exti__span(file.p + at, (size_t)(end - at));
    parts[n++] = exti__span(plan->tail.p, plan->tail.n);
    *out = exti__pe_checksum(parts, n, field);
    exti__free(parts);
    return 0;
}

int exti__pe_finish(struct pe_edit *e, struct exti_error *err)
{
    const uint64_t field = e->f->optional_at + OPTIONAL_CHECKSUM - e->slid;
    uint32_t sum = 0;
    int rc;

    /* The checksum field gets a patch of its own, after all others. */
    if (e->f->checksum)
        memcpy(e->head.p + field, e->f->file.p + field, 4);
    rc = put_head(e, err);
    if (!rc)
        rc = put_tail(e, err);
    if (!rc)
        rc = exti__plan_seal(e->plan, e->f->file, err);
    if (rc || !e->f->checksum)
        return rc;
    rc = checksum_of_copy(e, field, &sum, err);
    if (!rc) {
        uint8_t bytes[4];

        exti__put_u32(bytes, sum, false);
        rc = exti__plan_patch(e->plan, field, bytes, sizeof bytes, "CheckSum", err);
    }
    return rc ? rc : exti__plan_seal(e->plan, e->f->file, err);
}
