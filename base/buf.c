#include "base/buf.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/mem.h"

struct exti_buf exti__buf(size_t max)
{
    return (struct exti_buf){.max = max};
}

void exti__buf_free(struct exti_buf *b)
{
    exti__free(b->p);
    *b = (struct exti_buf){.max = b->max};
}

static int reserve_bytes(struct exti_buf *b, size_t n, struct exti_error *err)
{
    size_t cap = b->cap ? b->cap : 64;
    uint8_t *p;

    if (n > b->max - b->n)
        return exti__fail(err, EXTI_E_NOSPACE, EXTI_NO_OFFSET,
                          "would exceed the limit of %zu bytes", b->max);
    if (n <= b->cap - b->n)
        return 0;
    while (cap - b->n < n)
        cap = cap > b->max / 2 ? b->max : cap * 2;
    p = exti__realloc(b->p, cap);
    if (!p)
        return exti__fail_nomem(err);
    b->p = p;
    b->cap = cap;
    return 0;
}

int exti__buf_append(struct exti_buf *b, const void *p, size_t n, struct exti_error *err)
{
    int rc = reserve_bytes(b, n, err);

    if (rc)
        return rc;
    if (n)
        memcpy(b->p + b->n, p, n);
    b->n += n;
    return 0;
}

int exti__buf_zeros(struct exti_buf *b, size_t n, struct exti_error *err)
{
    int rc = reserve_bytes(b, n, err);

    if (rc)
        return rc;
    if (n)
        memset(b->p + b->n, 0, n);
    b->n += n;
    return 0;
}

int exti__buf_align(struct exti_buf *b, size_t align, struct exti_error *err)
{
    uint64_t to;

    if (!exti__align(b->n, align, &to))
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "cannot align to %zu", align);
    return exti__buf_zeros(b, (size_t)to - b->n, err);
}

int exti__buf_patch(struct exti_buf *b, size_t off, const void *p, size_t n, struct exti_error *err)
{
    if (off > b->n || n > b->n - off)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET,
                          "patch of %zu bytes at %zu is outside the buffer of %zu", n, off, b->n);
    if (n)
        memcpy(b->p + off, p, n);
    return 0;
}

static void put_bytes(uint8_t *p, uint64_t v, size_t n, bool big_endian)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(v >> 8 * (big_endian ? n - 1 - i : i));
}

void exti__put_u16(uint8_t *p, uint16_t v, bool big_endian)
{
    put_bytes(p, v, 2, big_endian);
}

void exti__put_u32(uint8_t *p, uint32_t v, bool big_endian)
{
    put_bytes(p, v, 4, big_endian);
}

void exti__put_u64(uint8_t *p, uint64_t v, bool big_endian)
{
    put_bytes(p, v, 8, big_endian);
}
