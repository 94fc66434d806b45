/* Writing LEB128 numbers. */
#include "macho/edit/macho_put_leb.h"

int exti__macho_put_uleb(struct exti_buf *b, uint64_t v, struct exti_error *err)
{
    uint8_t bytes[10];
    size_t n = 0;

    do {
        bytes[n++] = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
        v >>= 7;
    } while (v);
    return exti__buf_append(b, bytes, n, err);
}

int exti__macho_put_sleb(struct exti_buf *b, int64_t v, struct exti_error *err)
{
    uint8_t bytes[10];
    size_t n = 0;
    bool more;

    do {
        uint8_t low = (uint8_t)(v & 0x7f);

        /* An arithmetic shift, written out: C11 leaves shifts of negative numbers to the
         * implementation. */
        v = v < 0 ? -1 - (-1 - v) / 128 : v / 128;
        more = !(v == 0 && !(low & 0x40)) && !(v == -1 && low & 0x40);
        bytes[n++] = (uint8_t)(low | (more ? 0x80 : 0));
    } while (more);
    return exti__buf_append(b, bytes, n, err);
}
