#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/system.h"

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

/* Whether a terminal would obey the character, or reorder the line for it, instead of showing it. */
static bool is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x200e || code == 0x200f ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

/* The escape for the `n` bytes at `s`, of which `n` 0 says that the first is not UTF-8. */
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
    char *out = malloc(strlen(text) * 4 + 1), *to = out;

    if (out == NULL)
        return NULL;
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

    fputs(safe != NULL ? safe : "?", f);
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

static void prefix(const char *file)
{
    fflush(stdout);
    fprintf(stderr, "%sextisolate:%s ", cli_style(stderr, CLI_RED), cli_style(stderr, CLI_PLAIN));
    if (file != NULL && *file != '\0') {
        cli_put(stderr, file);
        fputs(": ", stderr);
    }
}

static void put_formatted(const char *fmt, va_list args) CLI_PRINTF(1, 0);
static void put_formatted(const char *fmt, va_list args)
{
    char *text = NULL;
    va_list again;

    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (n >= 0)
        text = malloc((size_t)n + 1);
    if (text != NULL) {
        vsnprintf(text, (size_t)n + 1, fmt, args);
        cli_put(stderr, text);
    }
    free(text);
    fputc('\n', stderr);
    fflush(stderr);
}

int cli_fail(const char *file, const char *fmt, ...)
{
    va_list args;

    prefix(file);
    va_start(args, fmt);
    put_formatted(fmt, args);
    va_end(args);
    return CLI_FAILED;
}

void cli_hint(const char *fmt, ...)
{
    va_list args;

    fputs("  ", stderr);
    va_start(args, fmt);
    put_formatted(fmt, args);
    va_end(args);
}

int cli_usage(const char *command, const char *fmt, ...)
{
    va_list args;

    fprintf(stderr, "extisolate %s: ", command);
    va_start(args, fmt);
    put_formatted(fmt, args);
    va_end(args);
    fprintf(stderr, "  'extisolate help %s' explains\n", command);
    return CLI_USAGE;
}

/* What the user can do about an error, or NULL. */
static const char *advice(const struct exti_error *err)
{
    switch (err->os_error) {
    case ENOSPC:
#ifdef EDQUOT /* which Windows lacks */
    case EDQUOT:
#endif
        return "free some space, or put CTXDIR on a file system that has more";
    case EROFS:
        return "choose a CTXDIR that can be written to";
    case EACCES:
    case EPERM:
        return "check who may read the file and write to CTXDIR";
    case ENAMETOOLONG:
        return "give the file or CTXDIR a shorter name";
    default:
        break;
    }
    switch (err->code) {
    case EXTI_E_FORMAT:
        return "the file is damaged or not a shared library: install it again, or name another";
    case EXTI_E_UNSUPPORTED:
        return err->offset == EXTI_NO_OFFSET
                   ? NULL
                   : "'extisolate inspect' describes the file; shared libraries can be copied, "
                     "such as extension modules and what they need";
    case EXTI_E_BUSY:
        return "use another CTXDIR for a second context";
    case EXTI_E_CHECK:
        return "'extisolate verify' lists what is wrong; a copy that is removed is made anew by "
               "'extisolate copy'";
    default:
        return NULL;
    }
}

int cli_error(const struct exti_error *err, const char *file)
{
    const char *what = advice(err);

    prefix(err->file[0] != '\0' ? err->file : file);
    if (err->offset != EXTI_NO_OFFSET)
        fprintf(stderr, "offset 0x%" PRIx64 ": ", err->offset);
    cli_put(stderr, err->message);
    fputc('\n', stderr);
    fflush(stderr);
    if (what != NULL)
        cli_hint("%s", what);
    return CLI_FAILED;
}
