#include "loader/rewrite/rewrite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/opts.h"
#include "base/os/fs_id.h"
#include "base/os/fs_map.h"
#include "base/os/fs_pieces.h"
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
                       const struct exti_mapping *source, const struct exti_rewritten *r,
                       const struct exti_request *req, struct exti_error *err)
{
    const struct exti_span before = exti__span(source->p, source->n),
                           after = exti__span(r->copy.image.p, r->copy.size);
    struct exti_unread lacking = source->unread;
    struct exti_error finding = {0};
    uint64_t stray;
    int rc;

    /* What nobody loads has not been read. */
    for (size_t i = 0; i < plan->cut_count && r->left_out.count; i++)
        if (plan->cuts[i].loaded)
            exti__parts_add(&lacking, &plan->cuts[i].left);
    stray = exti__plan_stray(plan, before, after, &lacking);

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

/* The file may have been replaced since it was read, or since the given image was made. */
static int check_unchanged(const char *src, const struct exti_file_id *id, struct exti_error *err)
{
    struct exti_file_id now;
    int rc = exti__fs_id(src, &now, err);

    if (rc || exti__fs_same_id(&now, id))
        return rc;
    return exti__fail_io(err, ESTALE, src, "changed while it was read");
}

/* The bytes that were not read are zeros in memory, so none of them may change. */
static int check_unread(const struct exti_plan *plan, const struct exti_range *unread,
                        struct exti_error *err)
{
    const uint64_t end = unread->at + unread->n;

    for (size_t i = 0; i < plan->count; i++)
        if (plan->patches[i].offset < end &&
            unread->at < plan->patches[i].offset + plan->patches[i].size)
            return exti__fail(err, EXTI_E_CHECK, plan->patches[i].offset,
                              "self-check: %s lies in code or data that was not read",
                              plan->patches[i].what);
    if (plan->tail.n && plan->tail_offset < end)
        return exti__fail(err, EXTI_E_CHECK, plan->tail_offset,
                          "self-check: the new end lies in code or data that was not read");
    return 0;
}

/* Patches closer than this are written as one range. */
#define NEAR 4096

/* Changes come in the order of their offsets. */
static void add_change(struct exti_rewritten *r, size_t at, size_t n)
{
    struct exti_range *last = r->changed_count ? &r->changed[r->changed_count - 1] : NULL;

    if (!last || at >= last->at + last->n + NEAR)
        r->changed[r->changed_count++] = (struct exti_range){at, n};
    else if (at + n > last->at + last->n)
        last->n = at + n - last->at;
}

static int by_offset(const void *a, const void *b)
{
    const struct exti_range *x = a, *y = b;

    return (x->at > y->at) - (x->at < y->at);
}

/* Keeps the ranges in which the image differs from its source. */
static int record_changes(struct exti_rewritten *r, const struct exti_plan *plan,
                          struct exti_error *err)
{
    const size_t cuts = r->left_out.count ? plan->cut_count : 0;
    struct exti_range *all;

    r->changed = exti__calloc(plan->count + cuts + 1, sizeof *r->changed);
    all = exti__calloc(plan->count + cuts + 1, sizeof *all);
    if (!r->changed || !all) {
        exti__free(all);
        return exti__fail_nomem(err);
    }
    for (size_t i = 0; i < plan->count; i++)
        all[i] = (struct exti_range){(size_t)plan->patches[i].offset, plan->patches[i].size};
    for (size_t i = 0; i < cuts; i++)
        all[plan->count + i] = (struct exti_range){(size_t)plan->cuts[i].at, plan->cuts[i].n};
    qsort(all, plan->count + cuts, sizeof *all, by_offset);
    for (size_t i = 0; i < plan->count + cuts; i++)
        add_change(r, all[i].at, all[i].n);
    exti__free(all);
    return 0;
}

/* After the self-check, which knows nothing of it: the headers say the same of an image that has
 * zeros there. */
static void make_cuts(struct exti_rewritten *r, const struct exti_plan *plan)
{
    for (size_t i = 0; i < plan->cut_count && r->left_out.count; i++)
        memcpy(r->copy.image.p + plan->cuts[i].at, plan->cuts[i].bytes, plan->cuts[i].n);
}

static uint32_t copy_flags(const struct exti_rewritten *r, const char *dst, bool sync)
{
    return EXTI_FS_EXECUTABLE | (sync ? EXTI_FS_SYNC : 0) |
           (r->id.mode & 077 ? 0 : EXTI_FS_PRIVATE) |
           (strcmp(dst, r->path) == 0 ? EXTI_FS_LIKE_OLD : 0);
}

/* Makes a copy of the source's bytes, with room for the plan. */
static int begin_copy(const struct exti_mapping *source, const char *dst,
                      const struct exti_plan *plan, struct exti_rewritten *r,
                      struct exti_error *err)
{
    const size_t size = (size_t)exti__plan_size(plan, source->n);
    const bool cuts = plan->tail.n && plan->tail_offset < source->n;
    const struct exti_fs_source from = {r->path, &r->id, source,
                                        cuts ? (size_t)plan->tail_offset : source->n, &r->left_out};

    if (dst)
        return exti__fs_clone(dst, &from, size, copy_flags(r, dst, false), &r->copy, err);
    r->copy = (struct exti_fs_clone){.size = size, .kept = from.kept, .fd = -1};
    return exti__fs_map_image(source, size > source->n ? size - source->n : 0, &r->copy.image, err);
}

/* An image in memory has what was read, and that the check may have looked at. */
static void clear_left_out(struct exti_rewritten *r)
{
    for (size_t i = 0; i < r->left_out.count; i++)
        memset(r->copy.image.p + r->left_out.part[i].at, 0, r->left_out.part[i].n);
}

/* Plans the edits of `source`, applies them to a copy of it and checks that.  `shareable`: NULL
 * unless the copy is to be lean. */
static int make_copy(const struct exti_mapping *source, const struct exti_shareable *shareable,
                     const char *dst, const struct exti_request *req, struct exti_plan *plan,
                     struct exti_rewritten *r, struct exti_error *err)
{
    const struct exti_span before = exti__span(source->p, source->n);
    const struct exti_format_ops *ops;
    int rc = exti__format_of(before, &ops, err);

    if (!rc)
        rc = ops->plan(before, req, plan, err);
    for (size_t i = 0; i < source->unread.count && !rc; i++)
        rc = check_unread(plan, &source->unread.part[i], err);
    if (!rc && shareable)
        exti__shareable_left(shareable, plan, &r->left_out, &r->unloaded);
    if (!rc)
        rc = begin_copy(source, dst, plan, r, err);
    if (rc)
        return rc;
    exti__plan_apply(plan, r->copy.image.p, before.n);
    rc = check_image(ops, plan, source, r, req, err);
    make_cuts(r, plan);
    if (!r->copy.temp)
        clear_left_out(r);
    return rc ? rc : record_changes(r, plan, err);
}

static int rewrite_once(const char *src, const struct exti_image *im, const char *dst,
                        struct exti_request *req, enum exti_lean lean, struct exti_rewritten *out,
                        struct exti_error *err)
{
    struct exti_rewritten r = {.path = src};
    const struct exti_mapping *source = im ? exti__inspected_mapping(im) : &r.source;
    struct exti_plan plan = {0};
    int rc = 0;

    if (im)
        r.id = *exti__inspected_id(im);
    else
        rc = exti__fs_map_parts(src, &exti__formats_unread, &r.source, &r.id, err);
    if (rc)
        return rc;
    exti__plan_init(&plan, source->n * PLAN_GROWTH + PLAN_SLACK);
    req->lean = im && lean >= EXTI_LEAN_WITH_DEBUG;
    req->undebugged = im && lean == EXTI_LEAN;
    rc = make_copy(source, im && lean != EXTI_FULL ? &im->shareable : NULL, dst, req, &plan, &r,
                   err);
    if (!rc)
        rc = check_unchanged(src, &r.id, err);
    exti__plan_free(&plan);
    if (rc) {
        exti__error_file(err, src);
        exti__rewritten_free(&r);
        return rc;
    }
    *out = r;
    return 0;
}

int exti__rewrite_image(const char *src, const struct exti_image *im, const char *dst,
                        const struct exti_rewrite_opts *opts, enum exti_lean lean,
                        struct exti_rewritten *out, struct exti_error *err)
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
        rc = rewrite_once(src, im, dst, &req, lean, out, &e);
        if (rc != EXTI_E_IO || e.os_error != ESTALE)
            break;
    }
    exti__bind_set_close(&bind);
    if (rc && err)
        *err = e;
    return rc;
}

int exti__rewritten_write(struct exti_rewritten *r, const char *dst, bool sync,
                          struct exti_error *err)
{
    return exti__fs_clone_replace(&r->copy, dst, r->changed, r->changed_count,
                                  copy_flags(r, dst, sync), err);
}

/* Gives the first difference in [at, end), or `end`. */
static size_t common_until(const uint8_t *a, const uint8_t *b, size_t at, size_t end)
{
    if (at >= end || memcmp(a + at, b + at, end - at) == 0)
        return end;
    while (a[at] == b[at])
        at++;
    return at;
}

/* A copy in memory, and what it is compared with. */
struct comparison {
    const struct exti_rewritten *r;
    const struct exti_fs_clone *copy;
    struct exti_pieces there, source;
    uint8_t *piece, *right; /* EXTI_PIECE each */
};

/* Gives the first difference in [at, *end), or *end, which may get less. */
static int compare_piece(struct comparison *c, size_t at, size_t *end, size_t *common,
                         struct exti_error *err)
{
    const uint8_t *right = c->copy->image.p + at;
    int rc = 0;

    if (!exti__parts_have(&c->r->left_out, at, end) &&
        exti__parts_have(&c->copy->image.unread, at, end)) {
        right = c->right;
        rc = exti__fs_pieces_read(&c->source, at, c->right, *end - at, err);
    }
    if (!rc)
        rc = exti__fs_pieces_read(&c->there, at, c->piece, *end - at, err);
    if (!rc)
        *common = at + common_until(right, c->piece, 0, *end - at);
    return rc;
}

static int compare_all(struct comparison *c, uint64_t *differs, struct exti_error *err)
{
    const uint64_t size = c->there.id.size;
    const size_t n = size < c->copy->size ? (size_t)size : c->copy->size;
    size_t at = 0, common = 0;
    int rc = 0;

    while (at < n && common == at && !rc) {
        size_t end = n - at < EXTI_PIECE ? n : at + EXTI_PIECE;

        rc = compare_piece(c, at, &end, &common, err);
        at = end;
    }
    if (!rc)
        rc = exti__fs_pieces_check(&c->there, err);
    if (!rc)
        *differs = common == size && size == c->copy->size ? EXTI_NO_OFFSET : common;
    return rc;
}

/* Opens the source too, for the parts that were not read. */
static int compare_with_source(const struct exti_rewritten *r, struct comparison *c,
                               uint64_t *differs, struct exti_error *err)
{
    uint64_t found;
    int rc;

    if (!r->copy.image.unread.count)
        return compare_all(c, differs, err);
    rc = exti__fs_pieces_open(r->path, &c->source, err);
    if (rc)
        return rc;
    rc = exti__fs_same_id(&c->source.id, &r->id)
             ? compare_all(c, &found, err)
             : exti__fail_io(err, ESTALE, r->path, "changed while it was compared");
    if (!rc)
        rc = exti__fs_pieces_check(&c->source, err);
    if (!rc)
        *differs = found;
    exti__fs_pieces_close(&c->source);
    return rc;
}

int exti__rewritten_compare(const struct exti_rewritten *r, const char *path, uint64_t *differs,
                            struct exti_error *err)
{
    struct comparison c = {.r = r, .copy = &r->copy};
    int rc = exti__fs_pieces_open(path, &c.there, err);

    if (rc)
        return rc;
    c.piece = exti__alloc(2 * EXTI_PIECE);
    if (c.piece) {
        c.right = c.piece + EXTI_PIECE;
        rc = compare_with_source(r, &c, differs, err);
    } else {
        rc = exti__fail_nomem(err);
    }
    exti__free(c.piece);
    exti__fs_pieces_close(&c.there);
    return rc;
}

void exti__rewritten_free(struct exti_rewritten *r)
{
    exti__fs_unmap(&r->source);
    exti__fs_clone_drop(&r->copy);
    exti__free(r->changed);
    r->changed = NULL;
}

static int rewrite_file(const char *src, const char *dst, const struct exti_rewrite_opts *opts,
                        struct exti_error *err)
{
    struct exti_rewritten r;
    int rc = exti__rewrite_image(src, NULL, dst, opts, EXTI_FULL, &r, err);

    if (rc)
        return rc;
    /* Windows replaces no file that is mapped. */
    exti__fs_unmap(&r.source);
    rc = exti__rewritten_write(&r, dst, opts->sync != 0, err);
    exti__rewritten_free(&r);
    return rc;
}

/* Finds out whether `dst` is another path of `src`.  A rewrite replaces nothing but a regular file,
 * and so not /dev/null. */
static int check_destination(const char *src, const char *dst, bool *same, struct exti_error *err)
{
    struct exti_error e = {0};
    struct exti_file_id a, b;
    int rc = exti__fs_id(src, &a, err);

    *same = false;
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
    *same = a.inode == b.inode && a.device == b.device;
    return 0;
}

/* Puts the copy in the place of the file that `path` leads to. */
static int rewrite_itself(const char *path, const struct exti_rewrite_opts *opts,
                          struct exti_error *err)
{
    char *file;
    int rc;

    if (exti__fs_is_named_itself(path))
        return rewrite_file(path, path, opts, err);
    rc = exti__fs_realpath(path, &file, err);
    if (rc)
        return rc;
    rc = rewrite_file(file, file, opts, err);
    exti__free(file);
    return rc;
}

static int check_edits(const struct exti_rewrite_opts *o, struct exti_error *err)
{
    if (o->flags & ~(EXTI_RW_SYMBOLIC | EXTI_RW_CLEAR_NODELETE | EXTI_RW_CLEAR_UNIQUE |
                     EXTI_RW_WITHHOLD | EXTI_RW_ALLOW_ABSENT))
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
    bool same;
    int rc = exti__opts_take(&o, sizeof o, opts, "struct exti_rewrite_opts", err);

    if (rc)
        return rc;
    if (!src || !dst || !*src || !*dst)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "source or destination is empty");
    rc = check_edits(&o, err);
    if (!rc)
        rc = check_destination(src, dst, &same, err);
    if (rc)
        return rc;
    return same ? rewrite_itself(dst, &o, err) : rewrite_file(src, dst, &o, err);
}
