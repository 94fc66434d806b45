/* Planning a universal file from rewritten slices.  To dyld, the kernel and codesign each slice
 * is a file of its own: all its offsets and its signature count from its start. */
#include "macho/edit/macho_universal.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "macho/edit/macho_needed.h"
#include "macho/edit/macho_rewrite.h"
#include "macho/read/macho_fat.h"

#define FAT_HEADER_SIZE 8
#define FAT_ARCH_SIZE 20
#define FAT_ARCH_64_SIZE 32

/* dyld maps slices, so they start at pages (Universal::valid). */
#define LEAST_ALIGN 12

struct universal {
    struct exti_span file;
    const struct macho_fat *fat;
    const struct exti_request *req;
    struct exti_span *bind;
    struct macho_rewritten *rewritten; /* by slice */
    bool *found;                       /* by opts->needed: some slice names the library */
    size_t *order;                     /* slices sorted by file offset */
    bool changed;
};

/* A slice for an architecture that the rewriter cannot handle, or that the library to bind to
 * lacks, is copied unchanged: no process that loads it could load the bound library's copy. */
static int rewrite_slice(struct universal *u, size_t i, size_t *handled, struct exti_error *err)
{
    const struct macho_slice *slice = &u->fat->slices[i];
    size_t bind_count;
    int rc;

    if (!exti__macho_slice_handled(slice))
        return 0;
    rc = exti__macho_bind_slices(u->req, slice->cputype, slice->cpusubtype, u->bind, &bind_count,
                                 err);
    if (rc || (u->req->bind_count && !bind_count))
        return rc;
    (*handled)++;
    rc = exti__macho_rewrite(slice->s, u->req->opts, u->bind, bind_count, u->found,
                             &u->rewritten[i], err);
    u->changed |= !rc && u->rewritten[i].changed;
    return rc;
}

/* Slices may need different libraries, but each library to edit must be in at least one. */
static int check_found(const struct universal *u, struct exti_error *err)
{
    const struct exti_rewrite_opts *opts = u->req->opts;

    for (size_t i = 0; i < opts->needed_count; i++)
        if (opts->needed[i].from && !u->found[i] && !(opts->flags & EXTI_RW_ALLOW_ABSENT))
            return exti__macho_fail_needed(&opts->needed[i], err);
    return 0;
}

static int rewrite_slices(struct universal *u, struct exti_error *err)
{
    size_t handled = 0;
    int rc = 0;

    for (size_t i = 0; i < u->fat->count && !rc; i++)
        rc = rewrite_slice(u, i, &handled, err);
    if (!rc && !handled)
        return exti__fail(err, EXTI_E_UNSUPPORTED, 0,
                          u->req->bind_count
                              ? "none of its %zu architectures can be rewritten for %s"
                              : "none of its %zu architectures can be rewritten",
                          u->fat->count, u->req->opts->bind_file);
    return rc ? rc : check_found(u, err);
}

static void sort_by_place(struct universal *u)
{
    const struct macho_slice *slices = u->fat->slices;

    for (size_t i = 0; i < u->fat->count; i++) {
        size_t at = i;

        for (; at && slices[u->order[at - 1]].offset > slices[i].offset; at--)
            u->order[at] = u->order[at - 1];
        u->order[at] = i;
    }
}

/* Writes the slice's new place into its fat_arch.  A hidden slice's entry follows the others. */
static int put_arch(const struct universal *u, size_t i, uint64_t offset, uint64_t size,
                    struct exti_plan *plan, struct exti_error *err)
{
    uint8_t at[16];

    if (u->fat->wide) {
        exti__put_u64(at, offset, true);
        exti__put_u64(at + 8, size, true);
        return exti__plan_patch(plan, FAT_HEADER_SIZE + i * FAT_ARCH_64_SIZE + 8, at, 16,
                                "fat_arch_64", err);
    }
    if (offset + size > UINT32_MAX)
        return exti__fail(err, EXTI_E_NOSPACE, FAT_HEADER_SIZE + i * FAT_ARCH_SIZE,
                          "fat_arch %zu: the slice would end past 4 GiB", i);
    exti__put_u32(at, (uint32_t)offset, true);
    exti__put_u32(at + 4, (uint32_t)size, true);
    return exti__plan_patch(plan, FAT_HEADER_SIZE + i * FAT_ARCH_SIZE + 8, at, 8, "fat_arch", err);
}

static int append_span(struct exti_buf *out, struct exti_span s, struct exti_error *err)
{
    return exti__buf_append(out, s.p, s.n, err);
}

/* Appends slice `i` at the next suitably aligned offset. */
static int put_slice(const struct universal *u, size_t i, struct exti_plan *plan,
                     struct exti_error *err)
{
    const struct macho_slice *slice = &u->fat->slices[i];
    const struct macho_rewritten *r = &u->rewritten[i];
    uint32_t align = slice->align < LEAST_ALIGN ? LEAST_ALIGN : slice->align;
    uint64_t end = plan->tail_offset + plan->tail.n;
    uint64_t offset = (end + ((uint64_t)1 << align) - 1) & ~(((uint64_t)1 << align) - 1);
    struct exti_span rest = slice->s;
    size_t start;
    int rc = exti__buf_zeros(&plan->tail, (size_t)(offset - end), err);

    start = plan->tail.n;
    if (!rc && r->changed) {
        rc = append_span(&plan->tail, exti__span(r->head.p, r->head.n), err);
        rest.p += r->head.n;
        rest.n = (size_t)(r->tail_offset - r->head.n);
    }
    if (!rc)
        rc = append_span(&plan->tail, rest, err);
    if (!rc && r->changed)
        rc = append_span(&plan->tail, exti__span(r->tail.p, r->tail.n), err);
    return rc ? rc : put_arch(u, i, offset, plan->tail.n - start, plan, err);
}

static int lay_out_slices(struct universal *u, struct exti_plan *plan, struct exti_error *err)
{
    int rc = 0;

    sort_by_place(u);
    plan->tail_offset = u->fat->slices[u->order[0]].offset;
    for (size_t i = 0; i < u->fat->count && !rc; i++)
        rc = put_slice(u, u->order[i], plan, err);
    return rc;
}

int exti__macho_plan_universal(struct exti_span file, const struct macho_fat *fat,
                               const struct exti_request *req, struct exti_span *bind,
                               struct exti_plan *plan, struct exti_error *err)
{
    struct universal u = {.file = file, .fat = fat, .req = req, .bind = bind};
    int rc = 0;

    u.rewritten = exti__calloc(fat->count, sizeof *u.rewritten);
    u.order = exti__calloc(fat->count, sizeof *u.order);
    u.found = exti__calloc(req->opts->needed_count + 1, sizeof *u.found);
    if (!u.rewritten || !u.order || !u.found)
        rc = exti__fail_nomem(err);
    if (!rc)
        rc = rewrite_slices(&u, err);
    if (!rc && u.changed)
        rc = lay_out_slices(&u, plan, err);
    for (size_t i = 0; i < fat->count && u.rewritten; i++)
        exti__macho_rewritten_free(&u.rewritten[i]);
    exti__free(u.rewritten);
    exti__free(u.order);
    exti__free(u.found);
    return rc;
}
