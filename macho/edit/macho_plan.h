/* The plan of one slice, as macho_plan.c makes it and macho_universal.c puts several together. */
#ifndef MACHO_EDIT_MACHO_PLAN_H
#define MACHO_EDIT_MACHO_PLAN_H

#include "macho/read/macho_priv.h"

/* A rewritten slice: `head` replaces its first bytes, `tail` all from tail_offset on. */
struct macho_rewritten {
    bool changed; /* false: it is as asked already, and the rest is empty */
    struct exti_buf head, tail;
    uint64_t tail_offset;
};

/* Rewrites one thin slice as `req` asks; `bind` are the slices for its architecture.  `found`, NULL for a
 * file that is no universal one: has each library set that is replaced here; one that is not is no
 * error. */
int exti__macho_rewrite(struct exti_span slice, const struct exti_rewrite_opts *opts,
                        const struct exti_span *bind, size_t bind_count, bool *found,
                        struct macho_rewritten *out, struct exti_error *err);
void exti__macho_rewritten_free(struct macho_rewritten *r);

/* The slices of req->bind for `cputype`, in order, into `out`, which has room for req->bind_count.
 * *count is 0 when the first has none: the library is not there for that architecture. */
int exti__macho_bind_slices(const struct exti_request *req, uint32_t cputype, uint32_t cpusubtype,
                            struct exti_span *out, size_t *count, struct exti_error *err);

/* macho_universal.c: plans a universal file; `bind` is scratch room for req->bind_count slices. */
int exti__macho_plan_universal(struct exti_span file, const struct macho_fat *fat,
                               const struct exti_request *req, struct exti_span *bind,
                               struct exti_plan *plan, struct exti_error *err);

#endif
