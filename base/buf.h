/* A growable byte buffer with a mandatory limit, and checked writes into it. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <extisolate.h>

struct exti_buf {
    uint8_t *p;
    size_t n, cap, max; /* growth past max fails with EXTI_E_NOSPACE */
};

struct exti_buf exti__buf(size_t max);
void exti__buf_free(struct exti_buf *b); /* leaves it empty; accepts a zeroed struct */

int exti__buf_append(struct exti_buf *b, const void *p, size_t n, struct exti_error *err);
int exti__buf_zeros(struct exti_buf *b, size_t n, struct exti_error *err);
/* Appends zeros up to a multiple of `align`, a power of two. */
int exti__buf_align(struct exti_buf *b, size_t align, struct exti_error *err);

/* Overwrites existing bytes.  EXTI_E_ARG past the end, which is a bug of the caller. */
int exti__buf_patch(struct exti_buf *b, size_t off, const void *p, size_t n,
                    struct exti_error *err);

/* Store one integer in the given byte order. */
void exti__put_u16(uint8_t *p, uint16_t v, bool big_endian);
void exti__put_u32(uint8_t *p, uint32_t v, bool big_endian);
void exti__put_u64(uint8_t *p, uint64_t v, bool big_endian);

#endif
