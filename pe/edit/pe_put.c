/* Overwrites bytes of the copy.  The headers are edited in e->head, since they may move. */
#include "pe/edit/pe_put.h"

#include <string.h>

#include "base/error.h"

int exti__pe_put(struct pe_edit *e, uint64_t at, const void *p, size_t n, const char *what,
                 struct exti_error *err)
{
    const uint64_t end = e->grow_by ? e->grow_at : e->head.n;

    if (at < end)
        return exti__buf_patch(&e->head, (size_t)(at - (at >= e->f->nt_at ? e->slid : 0)), p, n,
                               err);
    return exti__plan_patch(e->plan, at, p, n, what, err);
}

int exti__pe_put_u16(struct pe_edit *e, uint64_t at, uint16_t v, const char *what,
                     struct exti_error *err)
{
    uint8_t b[2];

    exti__put_u16(b, v, false);
    return exti__pe_put(e, at, b, sizeof b, what, err);
}

int exti__pe_put_u32(struct pe_edit *e, uint64_t at, uint32_t v, const char *what,
                     struct exti_error *err)
{
    uint8_t b[4];

    exti__put_u32(b, v, false);
    return exti__pe_put(e, at, b, sizeof b, what, err);
}

int exti__pe_put_zeros(struct pe_edit *e, uint64_t at, uint64_t n, const char *what,
                       struct exti_error *err)
{
    static const uint8_t zeros[256];
    int rc = 0;

    while (!rc && n) {
        size_t part = n < sizeof zeros ? (size_t)n : sizeof zeros;

        rc = exti__pe_put(e, at, zeros, part, what, err);
        at += part;
        n -= part;
    }
    return rc;
}

uint32_t exti__pe_u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

uint64_t exti__pe_offset(const struct pe_file *f, const void *p)
{
    return (uint64_t)((const uint8_t *)p - f->file.p);
}
