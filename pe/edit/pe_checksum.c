/* The image checksum.  Windows verifies it for drivers and early-loaded DLLs; for others only tools
 * do. */
#include "pe/edit/pe_checksum.h"

/* The contribution of `n` bytes at file offset `at` to a sum of 16-bit little-endian words.  Each
 * byte's weight depends on the parity of its offset only, so parts may have odd sizes. */
static uint64_t sum_of(const uint8_t *p, size_t n, uint64_t at)
{
    uint64_t even = 0, odd = 0;
    size_t k = 0;

    for (; k + 1 < n; k += 2) {
        even += p[k];
        odd += p[k + 1];
    }
    if (k < n)
        even += p[k];
    return at & 1 ? odd + (even << 8) : even + (odd << 8);
}

uint32_t exti__pe_checksum(const struct exti_span *parts, size_t count, uint64_t field)
{
    uint64_t at = 0, sum = 0;

    for (size_t i = 0; i < count; i++) {
        const struct exti_span s = parts[i];

        sum += sum_of(s.p, s.n, at);
        for (uint64_t k = field; k < field + 4; k++)
            if (k >= at && k - at < s.n)
                sum -= sum_of(s.p + (k - at), 1, k);
        at += s.n;
    }
    /* Carries are added back at the low end. */
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint32_t)sum + (uint32_t)at;
}
