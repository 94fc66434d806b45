#include "base/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

void exti__plan_init(struct exti_plan *plan, size_t max_bytes)
{
    *plan = (struct exti_plan){.data = exti__buf(max_bytes), .tail = exti__buf(max_bytes)};
}

void exti__plan_free(struct exti_plan *plan)
{
    exti__free(plan->patches);
    exti__buf_free(&plan->data);
    exti__buf_free(&plan->tail);
    *plan = (struct exti_plan){0};
}

int exti__plan_patch(struct exti_plan *plan, uint64_t offset, const void *bytes, size_t n,
                     const char *what, struct exti_error *err)
{
    struct exti_patch patch = {offset, n, plan->data.n, what};
    struct exti_patch *p = exti__array_room(plan->patches, plan->count, &plan->cap, sizeof *p);
    int rc;

    if (!p)
        return exti__fail_nomem(err);
    plan->patches = p;
    rc = exti__buf_append(&plan->data, bytes, n, err);
    if (rc)
        return rc;
    plan->patches[plan->count++] = patch;
    return 0;
}

static int order_patches(const void *a, const void *b)
{
    const struct exti_patch *x = a, *y = b;

    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* How many bytes of the input the result keeps, apart from patches. */
static uint64_t kept_bytes(const struct exti_plan *plan, uint64_t input_size)
{
    return plan->tail.n && plan->tail_offset < input_size ? plan->tail_offset : input_size;
}

int exti__plan_seal(struct exti_plan *plan, struct exti_span input, struct exti_error *err)
{
    uint64_t end = 0, limit = kept_bytes(plan, input.n);
    size_t kept = 0;

    if (plan->count)
        qsort(plan->patches, plan->count, sizeof *plan->patches, order_patches);
    for (size_t i = 0; i < plan->count; i++) {
        struct exti_patch *patch = &plan->patches[i];

        if (patch->offset > limit || patch->size > limit - patch->offset)
            return exti__fail(err, EXTI_E_FORMAT, patch->offset, "%s: %zu bytes lie past the end",
                              patch->what, patch->size);
        if (patch->offset < end)
            return exti__fail(err, EXTI_E_FORMAT, patch->offset,
                              "%s: overlaps another structure that changes", patch->what);
        end = patch->offset + patch->size;
        if (patch->size &&
            memcmp(input.p + patch->offset, plan->data.p + patch->data, patch->size) != 0)
            plan->patches[kept++] = *patch;
    }
    plan->count = kept;
    return 0;
}

static uint64_t clamp(uint64_t v, uint64_t least, uint64_t most)
{
    return v < least ? least : v > most ? most : v;
}

bool exti__plan_part(const struct exti_plan *plan, size_t i, uint64_t at, uint64_t end,
                     uint64_t *from, uint64_t *to)
{
    uint64_t lo = plan->tail_offset, hi = end;

    if (i > plan->count || (i == plan->count && !plan->tail.n))
        return false;
    if (i < plan->count) {
        lo = plan->patches[i].offset;
        hi = lo + plan->patches[i].size;
    }
    *from = clamp(lo, at, end);
    *to = clamp(hi, *from, end);
    return true;
}

bool exti__plan_edits(const struct exti_plan *plan, uint64_t at, uint64_t n)
{
    uint64_t from, to;

    for (size_t i = 0; exti__plan_part(plan, i, at, at + n, &from, &to); i++)
        if (from < to)
            return true;
    return false;
}

uint64_t exti__plan_size(const struct exti_plan *plan, uint64_t input_size)
{
    return plan->tail.n ? plan->tail_offset + plan->tail.n : input_size;
}

void exti__plan_apply(const struct exti_plan *plan, uint8_t *image, uint64_t input_size)
{
    for (size_t i = 0; i < plan->count; i++) {
        const struct exti_patch *patch = &plan->patches[i];

        memcpy(image + patch->offset, plan->data.p + patch->data, patch->size);
    }
    if (!plan->tail.n)
        return;
    if (plan->tail_offset > input_size)
        memset(image + input_size, 0, (size_t)(plan->tail_offset - input_size));
    memcpy(image + plan->tail_offset, plan->tail.p, plan->tail.n);
}

#define PAGE 4096

/* Gives the first difference in [from, to), or EXTI_NO_OFFSET. */
static uint64_t first_difference(struct exti_span a, struct exti_span b, uint64_t from, uint64_t to)
{
    if (from >= to || memcmp(a.p + from, b.p + from, (size_t)(to - from)) == 0)
        return EXTI_NO_OFFSET;
    while (a.p[from] == b.p[from])
        from++;
    return from;
}

/* Does the same for the bytes that are read. */
static uint64_t first_read_difference(struct exti_span a, struct exti_span b,
                                      const struct exti_unread *unread, uint64_t from, uint64_t to)
{
    uint64_t found = EXTI_NO_OFFSET;

    for (size_t i = 0; unread && i < unread->count && found == EXTI_NO_OFFSET; i++) {
        const uint64_t at = unread->part[i].at, end = at + unread->part[i].n;

        if (end <= from || at >= to)
            continue;
        found = first_difference(a, b, from, at);
        from = end;
    }
    return found == EXTI_NO_OFFSET ? first_difference(a, b, from, to) : found;
}

uint64_t exti__plan_stray(const struct exti_plan *plan, struct exti_span before,
                          struct exti_span after, const struct exti_unread *unread)
{
    uint64_t at = 0, stray;

    if (after.n != exti__plan_size(plan, before.n))
        return after.n;
    for (size_t i = 0; i < plan->count; i++) {
        const struct exti_patch *patch = &plan->patches[i];
        uint64_t page = patch->offset & ~(uint64_t)(PAGE - 1), end = patch->offset + patch->size;
        uint64_t next =
            i + 1 < plan->count ? plan->patches[i + 1].offset : kept_bytes(plan, before.n);
        uint64_t page_end = (end | (PAGE - 1)) + 1;

        stray = first_read_difference(before, after, unread, at > page ? at : page, patch->offset);
        if (stray == EXTI_NO_OFFSET)
            stray = first_read_difference(before, after, unread, end,
                                          page_end < next ? page_end : next);
        if (stray != EXTI_NO_OFFSET)
            return stray;
        at = end;
    }
    return EXTI_NO_OFFSET;
}
