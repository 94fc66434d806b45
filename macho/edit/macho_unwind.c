/* The __unwind_info section (mach-o/compact_unwind_encoding.h): a two-level index from functions
 * to unwind encodings.  Offsets within the section stay.  Functions, LSDAs and personality
 * pointers are 32-bit offsets from the image's start and change.  Compressed second-level pages
 * count functions from the first-level entry's, and DWARF encodings count from __eh_frame's
 * start, so neither changes. */
#include "macho/edit/macho_unwind.h"

#include <inttypes.h>

#include "base/error.h"
#include "base/mem.h"
#include "macho/edit/macho_shift_place.h"

#define UNWIND_SECTION_VERSION 1u
#define UNWIND_SECOND_LEVEL_REGULAR 2u
#define UNWIND_SECOND_LEVEL_COMPRESSED 3u
#define HEADER_SIZE 28u
#define INDEX_ENTRY_SIZE                                                                           \
    12u                    /* functionOffset, secondLevelPagesSectionOffset,
                              * lsdaIndexArraySectionOffset */
#define LSDA_ENTRY_SIZE 8u /* functionOffset, lsdaOffset */
#define PAGE_HEADER_SIZE 8u
#define REGULAR_ENTRY_SIZE 8u /* functionOffset, encoding */

struct unwind {
    struct exti_span s;
    uint8_t *p; /* writable s */
    uint64_t shift;
    uint8_t *taken; /* one bit per word; a word in two tables would be shifted twice */
};

/* Claims the words of `n` bytes at `off` for one table; fails if another table has one of them. */
static int claim_words(struct unwind *u, uint64_t off, uint64_t n, const char *what,
                       struct exti_error *err)
{
    struct exti_span words;
    int rc;

    if (off % 4)
        return exti__fail(err, EXTI_E_FORMAT, u->s.base + off,
                          "__unwind_info: %s is not aligned to 4 bytes", what);
    rc = exti__span_sub(u->s, off, n, what, &words, err);
    if (rc)
        return rc;
    for (uint64_t w = off / 4; w < (off + n) / 4; w++) {
        const uint8_t bit = (uint8_t)(1u << w % 8);

        if (u->taken[w / 8] & bit)
            return exti__fail(err, EXTI_E_FORMAT, u->s.base + w * 4,
                              "__unwind_info: %s overlaps another table", what);
        u->taken[w / 8] |= bit;
    }
    return 0;
}

/* Shifts `count` words, one every `stride` bytes from `off`. */
static int move_column(struct unwind *u, uint64_t off, uint64_t count, uint64_t stride,
                       const char *what, struct exti_error *err)
{
    int rc = 0;

    for (uint64_t i = 0; !rc && i < count; i++, off += stride) {
        rc = claim_words(u, off, 4, what, err);
        if (!rc)
            rc = exti__macho_shift_u32(u->p + off, u->shift, u->s.base + off, what, err);
    }
    return rc;
}

static int move_page(struct unwind *u, uint32_t off, struct exti_error *err)
{
    struct exti_cur c;
    uint32_t kind;
    uint16_t first, count;
    int rc = claim_words(u, off, PAGE_HEADER_SIZE, "second-level page", err);

    if (rc)
        return rc;
    c = exti__cur(u->s, false);
    exti__cur_skip(&c, off);
    kind = exti__cur_u32(&c);
    first = exti__cur_u16(&c);
    count = exti__cur_u16(&c);
    if (kind == UNWIND_SECOND_LEVEL_COMPRESSED)
        return 0;
    if (kind != UNWIND_SECOND_LEVEL_REGULAR)
        return exti__fail(err, EXTI_E_UNSUPPORTED, u->s.base + off,
                          "__unwind_info: second-level page of kind %" PRIu32
                          " cannot be moved, only 2 and 3",
                          kind);
    return move_column(u, (uint64_t)off + first, count, REGULAR_ENTRY_SIZE,
                       "regular page's function", err);
}

/* The LSDA array extends from the first index entry's LSDA offset to the last one's. */
static int move_lsdas(struct unwind *u, uint32_t from, uint32_t to, struct exti_error *err)
{
    uint64_t count;
    int rc;

    if (to < from || (to - from) % LSDA_ENTRY_SIZE)
        return exti__fail(err, EXTI_E_FORMAT, u->s.base,
                          "__unwind_info: LSDA array from %" PRIu32 " to %" PRIu32
                          " is not whole entries of 8 bytes",
                          from, to);
    count = (to - from) / LSDA_ENTRY_SIZE;
    rc = move_column(u, from, count, LSDA_ENTRY_SIZE, "LSDA array's function", err);
    if (!rc)
        rc = move_column(u, (uint64_t)from + 4, count, LSDA_ENTRY_SIZE, "LSDA array's LSDA", err);
    return rc;
}

static int move_index(struct unwind *u, uint32_t off, uint32_t count, struct exti_error *err)
{
    struct exti_span index;
    struct exti_cur c;
    uint32_t first_lsda = 0, lsda = 0;
    int rc =
        exti__span_table(u->s, off, count, INDEX_ENTRY_SIZE, "__unwind_info: index", &index, err);

    if (!rc)
        rc = move_column(u, off, count, INDEX_ENTRY_SIZE, "index entry's function", err);
    if (rc)
        return rc;
    c = exti__cur(index, false);
    for (uint32_t i = 0; !rc && i < count; i++) {
        uint32_t page;

        rc = claim_words(u, off + (uint64_t)i * INDEX_ENTRY_SIZE + 4, 8, "index entry", err);
        if (rc)
            return rc;
        exti__cur_skip(&c, 4);
        page = exti__cur_u32(&c);
        lsda = exti__cur_u32(&c);
        if (!i)
            first_lsda = lsda;
        if (page) /* the last entry, a sentinel, has none */
            rc = move_page(u, page, err);
    }
    return rc ? rc : move_lsdas(u, first_lsda, lsda, err);
}

int exti__macho_unwind_shift(uint8_t *p, size_t n, uint64_t base, uint64_t shift,
                             struct exti_error *err)
{
    struct unwind u = {.s = {.p = p, .n = n, .base = base}, .p = p, .shift = shift};
    struct exti_cur c = exti__cur(u.s, false);
    const uint32_t version = exti__cur_u32(&c);
    uint32_t personalities, personality_count, index, index_count;
    int rc;

    exti__cur_skip(&c, 8); /* common encodings contain no offsets */
    personalities = exti__cur_u32(&c);
    personality_count = exti__cur_u32(&c);
    index = exti__cur_u32(&c);
    index_count = exti__cur_u32(&c);
    rc = exti__cur_end(&c, "__unwind_info header", err);
    if (rc)
        return rc;
    if (version != UNWIND_SECTION_VERSION)
        return exti__fail(err, EXTI_E_UNSUPPORTED, base,
                          "__unwind_info: version %" PRIu32 " cannot be moved, only 1", version);
    u.taken = exti__calloc(n / 32 + 1, 1);
    if (!u.taken)
        return exti__fail_nomem(err);
    rc = claim_words(&u, 0, HEADER_SIZE, "header", err);
    if (!rc)
        rc = move_column(&u, personalities, personality_count, 4, "personality array", err);
    if (!rc)
        rc = move_index(&u, index, index_count, err);
    exti__free(u.taken);
    return rc;
}
