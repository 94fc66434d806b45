/* A planned rewrite: a list of small overwrites plus at most one blob at the end.  A format makes it,
 * the pipeline applies it; nothing else changes a byte. */
#ifndef BASE_PLAN_H
#define BASE_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"

struct exti_patch {
    uint64_t offset; /* in the file */
    size_t size;
    size_t data;      /* of the new bytes, in exti_plan.data */
    const char *what; /* the structure overwritten, for messages; static */
};

struct exti_plan {
    struct exti_patch *patches; /* by ascending offset once sealed */
    size_t count, cap;
    struct exti_buf data;
    uint64_t tail_offset; /* where `tail` goes: it replaces all from there on.  Past the input's end
                           * the gap is zeros */
    struct exti_buf tail; /* empty: the file keeps its size */
};

void exti__plan_init(struct exti_plan *plan, size_t max_bytes);
void exti__plan_free(struct exti_plan *plan);

/* Overwrites `n` bytes at `offset`.  Patches may come in any order but must not overlap. */
int exti__plan_patch(struct exti_plan *plan, uint64_t offset, const void *bytes, size_t n,
                     const char *what, struct exti_error *err);

/* Sorts, drops patches that change nothing, and refuses overlap or a patch outside `input` or in what
 * the tail replaces. */
int exti__plan_seal(struct exti_plan *plan, struct exti_span input, struct exti_error *err);

/* Size of the result for an input of `input_size` bytes. */
uint64_t exti__plan_size(const struct exti_plan *plan, uint64_t input_size);

/* Applies a sealed plan to `image`, which holds the input in its first input_size bytes and has room
 * for exti__plan_size if that is more. */
void exti__plan_apply(const struct exti_plan *plan, uint8_t *image, uint64_t input_size);

/* The offset of the first byte in which `after` differs from `before` outside the sealed plan's
 * patches and tail, or EXTI_NO_OFFSET.  Looks at the pages that have patches: those of a private
 * mapping that nothing was written to are the file's own. */
uint64_t exti__plan_stray(const struct exti_plan *plan, struct exti_span before,
                          struct exti_span after);

#endif
