#include "base/span.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/error.h"

struct exti_span exti__span(const void *p, size_t n)
{
    return (struct exti_span){.p = p, .n = n};
}

int exti__span_sub(struct exti_span s, uint64_t off, uint64_t len, const char *what,
                   struct exti_span *out, struct exti_error *err)
{
    if (off > s.n || len > s.n - off) {
        uint64_t at, left = off > s.n ? 0 : s.n - off;

        if (!exti__add(s.base, off, &at))
            at = EXTI_NO_OFFSET;
        return exti__fail(err, EXTI_E_FORMAT, at, "%s: needs %" PRIu64 " bytes, %" PRIu64 " left",
                          what, len, left);
    }
    *out = (struct exti_span){.p = s.p + off, .n = (size_t)len, .base = s.base + off};
    return 0;
}

int exti__span_table(struct exti_span s, uint64_t off, uint64_t count, uint64_t entsize,
                     const char *what, struct exti_span *out, struct exti_error *err)
{
    uint64_t len;

    if (!entsize)
        return exti__fail(err, EXTI_E_FORMAT, s.base + off, "%s: entry size is 0", what);
    if (!exti__mul(count, entsize, &len))
        return exti__fail(err, EXTI_E_FORMAT, s.base + off,
                          "%s: %" PRIu64 " entries of %" PRIu64 " bytes overflow", what, count,
                          entsize);
    return exti__span_sub(s, off, len, what, out, err);
}

int exti__span_cstr(struct exti_span s, uint64_t off, const char *what, const char **out,
                    struct exti_error *err)
{
    struct exti_span rest;
    int rc = exti__span_sub(s, off, 1, what, &rest, err);

    if (rc)
        return rc;
    if (!memchr(s.p + off, 0, s.n - (size_t)off))
        return exti__fail(err, EXTI_E_FORMAT, s.base + off, "%s: string has no end", what);
    *out = (const char *)s.p + off;
    return 0;
}

struct exti_cur exti__cur(struct exti_span s, bool big_endian)
{
    return (struct exti_cur){.s = s, .big_endian = big_endian};
}

/* The next `n` bytes, or NULL past the end. */
static const uint8_t *take_bytes(struct exti_cur *c, size_t n)
{
    if (c->failed || n > c->s.n - c->at) {
        c->failed = true;
        return NULL;
    }
    c->at += n;
    return c->s.p + c->at - n;
}

uint8_t exti__cur_u8(struct exti_cur *c)
{
    const uint8_t *p = take_bytes(c, 1);

    return p ? *p : 0;
}

uint16_t exti__cur_u16(struct exti_cur *c)
{
    const uint8_t *p = take_bytes(c, 2);

    return p ? exti__bytes_u16(p, c->big_endian) : 0;
}

uint32_t exti__cur_u32(struct exti_cur *c)
{
    const uint8_t *p = take_bytes(c, 4);

    return p ? exti__bytes_u32(p, c->big_endian) : 0;
}

uint64_t exti__cur_u64(struct exti_cur *c)
{
    const uint8_t *p = take_bytes(c, 8);

    return p ? exti__bytes_u64(p, c->big_endian) : 0;
}

void exti__cur_skip(struct exti_cur *c, uint64_t n)
{
    if (c->failed || n > c->s.n - c->at)
        c->failed = true;
    else
        c->at += (size_t)n;
}

void exti__cur_align(struct exti_cur *c, uint64_t align)
{
    uint64_t to;

    if (!exti__align(c->at, align, &to))
        c->failed = true;
    else
        exti__cur_skip(c, to - c->at);
}

int exti__cur_end(const struct exti_cur *c, const char *what, struct exti_error *err)
{
    if (!c->failed)
        return 0;
    return exti__fail(err, EXTI_E_FORMAT, c->s.base + c->at, "%s: ends early, after %zu bytes",
                      what, c->s.n);
}
