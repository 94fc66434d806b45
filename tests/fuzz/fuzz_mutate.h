/* Structure-aware mutation.  A target lists the fields of its input: headers, notes, tables.  The
 * mutator gives one a value that breaks arithmetic, or another field's value, or exchanges records.
 * Bytes outside the fields are left to libFuzzer's own mutations. */
#ifndef TESTS_FUZZ_MUTATE_H
#define TESTS_FUZZ_MUTATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed);

/* ---- random numbers -------------------------------------------------------------------------- */

static inline uint32_t fuzz_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static inline size_t fuzz_below(uint64_t *state, size_t n)
{
    return n ? fuzz_random(state) % n : 0;
}

/* ---- fields ---------------------------------------------------------------------------------- */

enum { FUZZ_FIELDS = 4096 };

struct fuzz_fields {
    const uint8_t *p;
    size_t n, base; /* `base` is added to each offset: where the file starts in the input */
    bool big_endian;
    size_t count;
    struct fuzz_field {
        size_t at;
        uint8_t width;
    } field[FUZZ_FIELDS];
};

/* Begins the fields of the file that follows `prefix` bytes of the input; false if there is
 * none. */
static inline bool fuzz_fields_begin(struct fuzz_fields *f, const uint8_t *data, size_t size,
                                     size_t prefix, bool big_endian)
{
    *f = (struct fuzz_fields){.base = prefix, .big_endian = big_endian};
    if (size <= prefix)
        return false;
    f->p = data + prefix;
    f->n = size - prefix;
    return true;
}

/* Reads past the end give 0. */
static inline uint64_t fuzz_get(const struct fuzz_fields *f, uint64_t at, size_t width)
{
    uint64_t v = 0;

    if (at > f->n || width > f->n - at)
        return 0;
    for (size_t i = 0; i < width; i++)
        v |= (uint64_t)f->p[at + i] << 8 * (f->big_endian ? width - 1 - i : i);
    return v;
}

static inline void fuzz_put(uint8_t *p, size_t width, bool big_endian, uint64_t v)
{
    for (size_t i = 0; i < width; i++)
        p[i] = (uint8_t)(v >> 8 * (big_endian ? width - 1 - i : i));
}

static inline void fuzz_field(struct fuzz_fields *f, uint64_t at, size_t width)
{
    if (at <= f->n && width <= f->n - at && f->count < FUZZ_FIELDS)
        f->field[f->count++] = (struct fuzz_field){f->base + (size_t)at, (uint8_t)width};
}

static inline void fuzz_words(struct fuzz_fields *f, uint64_t at, size_t count, size_t width)
{
    for (size_t i = 0; i < count; i++)
        fuzz_field(f, at + i * width, width);
}

/* ---- the mutations --------------------------------------------------------------------------- */

/* Values at which sums wrap, comparisons turn over and loops do not end. */
static inline uint64_t fuzz_value(uint64_t *state, size_t n, uint64_t old, uint64_t other)
{
    static const uint64_t limits[] = {0,
                                      1,
                                      2,
                                      7,
                                      8,
                                      0x1000,
                                      0x7fffffff,
                                      0x80000000,
                                      0xfffffffe,
                                      0xffffffff,
                                      INT64_MAX,
                                      (uint64_t)INT64_MAX + 1,
                                      UINT64_MAX,
                                      UINT64_MAX - 1,
                                      UINT64_MAX - 7,
                                      UINT64_MAX - 0xfff};
    const uint64_t step = fuzz_below(state, 17);

    switch (fuzz_below(state, 8)) {
    case 0:
        return limits[fuzz_below(state, sizeof limits / sizeof *limits)];
    case 1:
        return old + step - 8;
    case 2:
        return n + step - 8;
    case 3:
        return other;
    case 4:
        return other + step - 8;
    case 5:
        return -old - step; /* so that old + new wraps */
    case 6:
        return old ^ (uint64_t)1 << fuzz_below(state, 64);
    default:
        return fuzz_below(state, n + 1);
    }
}

static inline void fuzz_change_field(const struct fuzz_fields *f, uint8_t *data, size_t size,
                                     uint64_t *state)
{
    const struct fuzz_field *a = &f->field[fuzz_below(state, f->count)];
    const struct fuzz_field *b = &f->field[fuzz_below(state, f->count)];
    const uint64_t old = fuzz_get(f, a->at - f->base, a->width);
    const uint64_t other = fuzz_get(f, b->at - f->base, b->width);

    if (a->at + a->width <= size)
        fuzz_put(data + a->at, a->width, f->big_endian, fuzz_value(state, f->n, old, other));
}

/* Copies the bytes at one field over those at another, so that records repeat and overlap. */
static inline void fuzz_copy_record(const struct fuzz_fields *f, uint8_t *data, size_t size,
                                    uint64_t *state)
{
    static const size_t sizes[] = {8, 12, 16, 20, 24, 40, 56, 64};
    const size_t n = sizes[fuzz_below(state, sizeof sizes / sizeof *sizes)];
    const size_t from = f->field[fuzz_below(state, f->count)].at;
    const size_t to = f->field[fuzz_below(state, f->count)].at;

    if (from + n <= size && to + n <= size)
        memmove(data + to, data + from, n);
}

/* Mutates `data`, whose fields `f` lists.  Returns the new size. */
static inline size_t fuzz_mutate(const struct fuzz_fields *f, uint8_t *data, size_t size,
                                 size_t room, unsigned seed)
{
    uint64_t state = seed + UINT64_C(0x9e3779b97f4a7c15);
    size_t times = 1 + fuzz_below(&state, 4);

    if (!f->count || !fuzz_below(&state, 3))
        return LLVMFuzzerMutate(data, size, room);
    for (; times; times--)
        if (fuzz_below(&state, 5))
            fuzz_change_field(f, data, size, &state);
        else
            fuzz_copy_record(f, data, size, &state);
    return size;
}

#endif
