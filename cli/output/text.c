#include "cli/output/text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cli/os/memory.h"
#include "cli/os/system.h"

size_t cli_utf8(const char *s, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char c = (unsigned char)s[0];
    size_t n = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : 4;
    uint32_t v = n == 1 ? c : c & (0xffu >> (n + 1));

    if (n == 4 && (c < 0xf0 || c > 0xf4))
        return 0;
    for (size_t i = 1; i < n; i++) {
        if (((unsigned char)s[i] & 0xc0) != 0x80)
            return 0;
        v = v << 6 | ((unsigned char)s[i] & 0x3f);
    }
    if (v < least[n] || v > 0x10ffff || (v >= 0xd800 && v < 0xe000))
        return 0;
    *code = v;
    return n;
}

/* Terminals obey these characters, or reorder the line because of them, instead of showing them. */
static bool is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x200e || code == 0x200f ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

/* Escapes the character of `n` bytes at `s`; 0 means one byte that is not UTF-8. */
static void escape(char out[16], const char *s, size_t n, uint32_t code)
{
    if (n == 1 && (code == '\n' || code == '\t' || code == '\r'))
        snprintf(out, 16, "\\%c", code == '\n' ? 'n' : code == '\t' ? 't' : 'r');
    else if (n <= 1)
        snprintf(out, 16, "\\x%02x", (unsigned)(unsigned char)s[0]);
    else
        snprintf(out, 16, "\\u%04" PRIx32, code);
}

char *cli_safe(const char *text)
{
    /* The longest escape, \xHH, takes four bytes for one. */
    char *out = cli_alloc(strlen(text) * 4 + 1), *to = out;

    while (*text != '\0') {
        uint32_t code = 0;
        size_t n = cli_utf8(text, &code);
        char esc[16];

        if (n != 0 && !is_control(code)) {
            memcpy(to, text, n);
            to += n;
        } else {
            escape(esc, text, n, code);
            size_t len = strlen(esc);
            memcpy(to, esc, len);
            to += len;
        }
        text += n != 0 ? n : 1;
    }
    *to = '\0';
    return out;
}

void cli_put(FILE *f, const char *text)
{
    char *safe = cli_safe(text);

    fputs(safe, f);
    free(safe);
}

const char *cli_style(FILE *f, enum cli_style style)
{
    static const char *const codes[] = {"\033[0m",  "\033[1m",  "\033[2m",
                                        "\033[31m", "\033[32m", "\033[33m"};
    const char *no_colour = getenv("NO_COLOR");
    bool wanted = no_colour == NULL || *no_colour == '\0';

    return wanted && cli_is_terminal(f) ? codes[style] : "";
}
