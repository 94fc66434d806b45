#include "base/utf8.h"

#include <string.h>

static bool in_range(unsigned char c, unsigned lo, unsigned hi)
{
    return c >= lo && c <= hi;
}

/* The table in RFC 3629, section 4. */
size_t exti__utf8_length(const char *p, size_t n)
{
    const unsigned char *s = (const unsigned char *)p;
    size_t length;

    if (!n)
        return 0;
    if (s[0] < 0x80)
        return 1;
    length = in_range(s[0], 0xc2, 0xdf)   ? 2
             : in_range(s[0], 0xe0, 0xef) ? 3
             : in_range(s[0], 0xf0, 0xf4) ? 4
                                          : 0;
    if (!length || n < length)
        return 0;
    for (size_t i = 1; i < length; i++)
        if (!in_range(s[i], 0x80, 0xbf))
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return length;
}

bool exti__utf8_is(const char *text)
{
    size_t left = strlen(text), n;

    for (; left; text += n, left -= n) {
        n = exti__utf8_length(text, left);
        if (!n)
            return false;
    }
    return true;
}

size_t exti__utf8_put(char *out, uint32_t code)
{
    const size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};

    for (size_t i = n; i > 1; i--, code >>= 6)
        out[i - 1] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(first[n] | code);
    return n;
}
