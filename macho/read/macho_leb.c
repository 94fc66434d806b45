/* LEB128 numbers and strings in opcode streams and tries. */
#include "macho/read/macho_leb.h"

#include <string.h>

/* The 10th byte holds the 64th bit alone: its seven bits are 0, or `set`.  dyld rejects bytes
 * beyond it even if they are zero. */
static uint64_t read_leb(struct exti_cur *c, uint8_t set, bool is_signed)
{
    uint64_t v = 0;
    unsigned shift = 0;
    uint8_t byte;

    do {
        byte = exti__cur_u8(c);
        if (shift > 63 || (shift == 63 && (byte & 0x7f) != 0 && (byte & 0x7f) != set))
            c->failed = true;
        if (c->failed)
            return 0;
        v |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    return is_signed && byte & 0x40 && shift < 64 ? v | UINT64_MAX << shift : v;
}

uint64_t exti__macho_uleb(struct exti_cur *c)
{
    return read_leb(c, 1, false);
}

int64_t exti__macho_sleb(struct exti_cur *c)
{
    return (int64_t)read_leb(c, 0x7f, true);
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
