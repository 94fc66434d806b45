/* Arithmetic that reports overflow.  No other file uses the overflow builtins. */
#ifndef BASE_CHECKED_H
#define BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Each returns false and leaves *out alone if the result does not fit. */
static inline bool exti__add(uint64_t a, uint64_t b, uint64_t *out)
{
    uint64_t r;

    if (__builtin_add_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}

static inline bool exti__mul(uint64_t a, uint64_t b, uint64_t *out)
{
    uint64_t r;

    if (__builtin_mul_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}

static inline bool exti__is_power_of_2(uint64_t n)
{
    return n && !(n & (n - 1));
}

/* Rounds up to a multiple of `align`, a power of two. */
static inline bool exti__align(uint64_t n, uint64_t align, uint64_t *out)
{
    uint64_t r;

    if (!exti__is_power_of_2(align) || !exti__add(n, align - 1, &r))
        return false;
    *out = r & ~(align - 1);
    return true;
}

#endif
