/* LEB128 numbers and strings in opcode streams and tries. */
#include "macho/read/macho_leb.h"

#include <string.h>

uint64_t exti__macho_uleb(struct exti_cur *c)
{
    uint64_t v = 0;
    unsigned shift = 0;
    uint8_t byte;

    do {
        byte = exti__cur_u8(c);
        /* dyld rejects bytes beyond the 64th bit even if they are zero. */
        if (shift > 63 || (shift == 63 && (byte & 0x7e)))
            c->failed = true;
        if (c->failed)
            return 0;
        v |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    return v;
}

int64_t exti__macho_sleb(struct exti_cur *c)
{
    uint64_t v = 0;
    unsigned shift = 0;
    uint8_t byte;

    do {
        byte = exti__cur_u8(c);
        /* The 10th byte holds the sign bit alone, so all seven bits must agree. */
        if (shift > 63 || (shift == 63 && (byte & 0x7f) != 0 && (byte & 0x7f) != 0x7f))
            c->failed = true;
        if (c->failed)
            return 0;
        v |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    if (byte & 0x40 && shift < 64)
        v |= UINT64_MAX << shift;
    return (int64_t)v;
}

const char *exti__macho_cur_cstr(struct exti_cur *c)
{
    const uint8_t *p, *end;

    if (c->failed || c->at >= c->s.n) {
        c->failed = true;
        return "";
    }
    p = c->s.p + c->at;
    end = memchr(p, 0, c->s.n - c->at);
    if (!end) {
        c->failed = true;
        return "";
    }
    exti__cur_skip(c, (uint64_t)(end - p) + 1);
    return (const char *)p;
}
