#include "loader/rewrite/rewrite.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/opts.h"
#include "base/os/fs_id.h"
#include "base/os/fs_map.h"
#include "base/os/fs_replace.h"
#include "loader/image/formats.h"
#include "loader/image/inspect.h"
#include "loader/rewrite/bind_set.h"

/* The limit on a plan's bytes, whatever a malformed file claims: a multiple of its size and
 * some. */
#define PLAN_GROWTH 4
#define PLAN_SLACK ((size_t)1 << 20)

#define ATTEMPTS 3

static int first_finding(void *user, const struct exti_error *finding)
{
    struct exti_error *first = user;

    *first = *finding;
    return 1;
}

/* The self-check before a copy gets its name: only planned bytes have changed, and the loader
 * will see what was asked for. */
static int check_image(const struct exti_format_ops *ops, const struct exti_plan *plan,
                       struct exti_span before, struct exti_span after,
                       const struct exti_request *req, struct exti_error *err)
{
    struct exti_error finding = {0};
    uint64_t stray = exti__plan_stray(plan, before, after);
    int rc;

    if (stray != EXTI_NO_OFFSET)
        return exti__fail(err, EXTI_E_CHECK, stray, "self-check: an unplanned byte has changed");
    rc = ops->check(before, after, req, plan, first_finding, &finding, err);
    if (rc)
        return rc;
    if (finding.code)
        return exti__fail(err, EXTI_E_CHECK, finding.offset, "self-check of the copy: %s",
                          finding.message);
    return 0;
}

/* A write into the source in the meantime shows in the mapping, but may be missing from the
 * plan. */
static int check_unchanged(const char *src, const struct exti_file_id *id, struct exti_error *err)
{
    struct exti_file_id now;
    int rc = exti__fs_id(src, &now, err);

    if (rc || (now.size == id->size && now.mtime_ns == id->mtime_ns))
        return rc;
    return exti__fail_io(err, ESTALE, src, "changed while it was read");
}

/* Patches closer than this are written as one range. */
#define NEAR 4096

/* Keeps the ranges of the plan in which the image differs from its source. */
static int record_changes(struct exti_rewritten *r, size_t source, const struct exti_plan *plan,
                          struct exti_error *err)
{
    struct exti_fs_range *last = NULL;

    r->kept = plan->tail.n && plan->tail_offset < source ? (size_t)plan->tail_offset : source;
    r->changed = exti__calloc(plan->count, sizeof *r->changed);
    if (!r->changed)
        return exti__fail_nomem(err);
    for (size_t i = 0; i < plan->count; i++) {
        const size_t at = (size_t)plan->patches[i].offset, n = plan->patches[i].size;

        if (last && at - (last->at + last->n) < NEAR) {
            last->n = at + n - last->at;
        } else {
            last = &r->changed[r->changed_count++];
            *last = (struct exti_fs_range){at, n};
        }
    }
    return 0;
}

static int map_source(const struct exti_image *im, struct exti_rewritten *r,
                      struct exti_span *before, struct exti_error *err)
{
    int rc;

    if (im) {
        r->id = *exti__inspected_id(im);
        *before = im->bytes;
        return 0;
    }
    rc = exti__fs_map(r->path, &r->source, &r->id, err);
    if (!rc)
        *before = exti__span(r->source.p, r->source.n);
    return rc;
}

static int rewrite_once(const char *src, const struct exti_image *im,
                        const struct exti_request *req, struct exti_rewritten *out,
                        struct exti_error *err)
{
    struct exti_rewritten r = {.path = src};
    struct exti_plan plan = {0};
    const struct exti_format_ops *ops;
    struct exti_span before;
    int rc;

    rc = map_source(im, &r, &before, err);
    if (rc)
        return rc;
    exti__plan_init(&plan, before.n * PLAN_GROWTH + PLAN_SLACK);
    rc = exti__format_of(before, &ops, err);
    if (rc)
        goto out;
    rc = ops->plan(before, req, &plan, err);
    if (rc)
        goto out;
    r.size = (size_t)exti__plan_size(&plan, before.n);
    rc = exti__fs_map_copy(src, &r.id, r.size > before.n ? r.size - before.n : 0, &r.image, err);
    if (rc)
        goto out;
    exti__plan_apply(&plan, r.image.p, before.n);
    rc = check_image(ops, &plan, before, exti__span(r.image.p, r.size), req, err);
    if (!rc)
        rc = check_unchanged(src, &r.id, err);
    if (!rc)
        rc = record_changes(&r, before.n, &plan, err);
out:
    exti__plan_free(&plan);
    if (rc) {
        exti__error_file(err, src);
        exti__rewritten_free(&r);
        return rc;
    }
    *out = r;
    return 0;
}

int exti__rewrite_image(const char *src, const struct exti_image *im,
                        const struct exti_rewrite_opts *opts, struct exti_rewritten *out,
                        struct exti_error *err)
{
    struct exti_bind_set bind;
    struct exti_request req = {.opts = opts};
    struct exti_error e;
    int rc = exti__bind_set_open(&bind, opts->bind_file, err);

    if (rc)
        return rc;
    req.bind = bind.spans;
    req.bind_count = bind.count;
    /* A package manager may be replacing the file: try again. */
    for (int tries = im ? ATTEMPTS - 1 : 0; tries < ATTEMPTS; tries++) {
        rc = rewrite_once(src, im, &req, out, &e);
        if (rc != EXTI_E_IO || e.os_error != ESTALE)
            break;
    }
    exti__bind_set_close(&bind);
    if (rc && err)
        *err = e;
    return rc;
}

int exti__rewritten_write(const struct exti_rewritten *r, const char *dst, bool sync,
                          struct exti_error *err)
{
    const struct exti_fs_source from = {r->path, &r->id, r->kept, r->changed, r->changed_count};
    uint32_t flags = EXTI_FS_EXECUTABLE;

    if (sync)
        flags |= EXTI_FS_SYNC;
    if (!(r->id.mode & 077))
        flags |= EXTI_FS_PRIVATE;
    return exti__fs_replace_from(dst, r->image.p, r->size, &from, flags, err);
}

void exti__rewritten_free(struct exti_rewritten *r)
{
    exti__fs_unmap(&r->source);
    exti__fs_unmap(&r->image);
    exti__free(r->changed);
    r->changed = NULL;
}

static int rewrite_file(const char *src, const char *dst, const struct exti_rewrite_opts *opts,
                        struct exti_error *err)
{
    struct exti_rewritten r;
    int rc = exti__rewrite_image(src, NULL, opts, &r, err);

    if (rc)
        return rc;
    rc = exti__rewritten_write(&r, dst, opts->sync != 0, err);
    exti__rewritten_free(&r);
    return rc;
}

/* A rewrite never edits in place: `dst` must not be another path of `src`.  Nor does it replace
 * anything but a regular file, such as /dev/null. */
static int check_destination(const char *src, const char *dst, struct exti_error *err)
{
    struct exti_error e = {0};
    struct exti_file_id a, b;
    int rc = exti__fs_id(src, &a, err);

    if (rc)
        return rc;
    rc = exti__fs_id(dst, &b, &e);
    if (rc && e.os_error == ENOENT)
        return 0;
    if (rc) {
        if (err)
            *err = e;
        return rc;
    }
    if (a.inode != b.inode || a.device != b.device)
        return 0;
    rc = exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET,
                    "source and destination are the same file; the original is never edited");
    exti__error_file(err, dst);
    return rc;
}

static int check_edits(const struct exti_rewrite_opts *o, struct exti_error *err)
{
    if (o->flags & ~(EXTI_RW_SYMBOLIC | EXTI_RW_CLEAR_NODELETE | EXTI_RW_CLEAR_UNIQUE))
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "unknown EXTI_RW_ flags 0x%x", o->flags);
    if ((o->bind_name || o->bind_short) && !o->bind_file)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "bind_name without bind_file");
    if (o->bind_short && !o->bind_name)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "bind_short without bind_name");
    if ((o->needed_count && !o->needed) || (o->rename_count && !o->renames))
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "needed or renames is NULL");
    for (size_t i = 0; i < o->needed_count; i++) {
        const struct exti_needed *n = &o->needed[i];

        if ((!n->from && !n->to) || (n->from && !*n->from) || (n->to && !*n->to))
            return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "needed %zu names no library", i);
    }
    for (size_t i = 0; i < o->rename_count; i++) {
        const struct exti_rename *r = &o->renames[i];

        if (!r->from || !r->to || !*r->from || !*r->to)
            return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "rename %zu lacks a name", i);
    }
    return 0;
}

int exti_rewrite(const char *src, const char *dst, const struct exti_rewrite_opts *opts,
                 struct exti_error *err)
{
    struct exti_rewrite_opts o;
    int rc = exti__opts_take(&o, sizeof o, opts, "struct exti_rewrite_opts", err);

    if (rc)
        return rc;
    if (!src || !dst || !*src || !*dst)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "source or destination is empty");
    rc = check_edits(&o, err);
    if (!rc)
        rc = check_destination(src, dst, err);
    return rc ? rc : rewrite_file(src, dst, &o, err);
}
