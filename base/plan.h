/* A planned rewrite: a list of small overwrites and at most one blob at the end.  A format makes
 * the plan, and loader/rewrite applies it; nothing else changes a byte. */
#ifndef BASE_PLAN_H
#define BASE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"
#include "base/unread.h"

struct exti_patch {
    uint64_t offset; /* in the file */
    size_t size;
    size_t data;      /* offset of the new bytes in exti_plan.data */
    const char *what; /* the overwritten structure, for messages; static */
};

/* What a lean copy is without, and which of its headers says so. */
struct exti_cut {
    struct exti_range left; /* of the input; `n` is 0 if only the header changes */
    uint64_t at;            /* of the header, or a field of it, in the result */
    uint8_t bytes[64];      /* what it is to say instead: */
    size_t n;               /* so many of them */
    /* The bytes are the end of a segment's file part, which loaders then take for zeros.  If not,
     * no loader looks at them, and nor does who reads the input. */
    bool loaded;
};

/* A segment, and the debug sections of a library. */
#define EXTI_CUTS_MAX 32

struct exti_plan {
    struct exti_patch *patches; /* owned; sorted by offset once sealed */
    size_t count, cap;
    struct exti_buf data;
    uint64_t
        tail_offset; /* `tail` replaces everything from here on; if this is past the input's end,
                           * the gap is filled with zeros */
    struct exti_buf tail;                /* empty: the file keeps its size */
    struct exti_cut cuts[EXTI_CUTS_MAX]; /* not yet made: for a request with `lean` */
    size_t cut_count;
};

void exti__plan_init(struct exti_plan *plan, size_t max_bytes);
void exti__plan_free(struct exti_plan *plan);

/* Overwrites `n` bytes at `offset` with a copy of `bytes`.  Patches may come in any order but must
 * not overlap. */
int exti__plan_patch(struct exti_plan *plan, uint64_t offset, const void *bytes, size_t n,
                     const char *what, struct exti_error *err);

/* Sorts the patches and drops those that change nothing.  EXTI_E_FORMAT if patches overlap, or if
 * one lies outside `input` or in the part that the tail replaces. */
int exti__plan_seal(struct exti_plan *plan, struct exti_span input, struct exti_error *err);

/* Gives what part of [at, end) change `i` of a sealed plan writes, which may be empty: its patches
 * in order, then its tail.  False if there is no such change. */
bool exti__plan_part(const struct exti_plan *plan, size_t i, uint64_t at, uint64_t end,
                     uint64_t *from, uint64_t *to);

/* Whether a sealed plan writes any of the `n` bytes at `at`. */
bool exti__plan_edits(const struct exti_plan *plan, uint64_t at, uint64_t n);

/* Gives the size of the result for an input of `input_size` bytes. */
uint64_t exti__plan_size(const struct exti_plan *plan, uint64_t input_size);

/* Applies a sealed plan to `image`, which starts with the `input_size` bytes of the input and has
 * room for exti__plan_size bytes. */
void exti__plan_apply(const struct exti_plan *plan, uint8_t *image, uint64_t input_size);

/* Gives the offset of the first byte in which `after` differs from `before` outside the sealed
 * plan's patches and tail, or EXTI_NO_OFFSET.  Compares only the pages with patches: `after` is a
 * private mapping of the file, and its other pages are the file's own.  Nor does it compare what
 * `before` lacks (`unread`; NULL if it has all). */
uint64_t exti__plan_stray(const struct exti_plan *plan, struct exti_span before,
                          struct exti_span after, const struct exti_unread *unread);

#endif
