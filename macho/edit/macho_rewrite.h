/* One slice rewritten. */
#ifndef MACHO_EDIT_MACHO_REWRITE_H
#define MACHO_EDIT_MACHO_REWRITE_H

#include "base/buf.h"
#include "base/format.h"

/* A rewritten slice: `head` replaces its first bytes, `tail` everything from tail_offset on. */
struct macho_rewritten {
    bool changed; /* false: the slice already is as requested, and the rest is empty */
    struct exti_buf head, tail;
    uint64_t tail_offset;
};

/* Rewrites one thin slice.  `bind` are the slices for its architecture of the libraries to bind
 * to. `found` is NULL for a thin file, where a library to replace or remove must be present.  For
 * a universal file it has an element for each of opts->needed, which is set if this slice names
 * the library. */
int exti__macho_rewrite(struct exti_span slice, const struct exti_rewrite_opts *opts,
                        const struct exti_span *bind, size_t bind_count, bool *found,
                        struct macho_rewritten *out, struct exti_error *err);
void exti__macho_rewritten_free(struct macho_rewritten *r);

/* The slices of req->bind for one architecture, in order, into `out`, which has room for
 * req->bind_count. *count is 0 if the first of req->bind has none. */
int exti__macho_bind_slices(const struct exti_request *req, uint32_t cputype, uint32_t cpusubtype,
                            struct exti_span *out, size_t *count, struct exti_error *err);

#endif
