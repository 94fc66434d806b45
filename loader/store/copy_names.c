#include "loader/store/copy_names.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/os/fs_random.h"
#include "base/path.h"

/* Lower case only: macOS and Windows file names do not tell case apart. */
static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";

#define TAG_LENGTH 8 /* 36^8: 41 bits */
#define STEM_MAX 120 /* longer stems and suffixes are cut; the hash keeps the name unique */
#define SUFFIX_MAX 80

static void base36(uint64_t v, char *out)
{
    for (int i = 0; i < TAG_LENGTH; i++, v /= 36)
        out[i] = digits[v % 36];
    out[TAG_LENGTH] = 0;
}

int exti__context_name_make(char *out, struct exti_error *err)
{
    uint64_t v;

    int rc = exti__fs_random(&v, sizeof v, "a context name", err);

    if (!rc)
        base36(v, out);
    return rc;
}

int exti__context_name_check(const char *name, struct exti_error *err)
{
    size_t n = strlen(name);
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

    if (n && n <= EXTI_NAME_MAX && strspn(name, allowed) == n)
        return 0;
    return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET,
                      "'%.64s' cannot be a context's name: 1 to %d letters, digits, '_' or '-'",
                      name, EXTI_NAME_MAX);
}

/* FNV-1a, 64 bits; `h` is FNV_START or the hash of the text before. */
#define FNV_START 0xcbf29ce484222325u
static uint64_t hash_text(const char *text, uint64_t h)
{
    for (; *text; text++)
        h = (h ^ (uint8_t)*text) * 0x100000001b3u;
    return h;
}

/* The part of the source's name that goes into the copy's.  No leading dots: hidden files are the
 * directory's own. */
static const char *visible_base(const char *source)
{
    const char *base = exti__base_name(source);

    return base + strspn(base, ".");
}

static bool continues_character(char c)
{
    return ((uint8_t)c & 0xc0) == 0x80;
}

/* How many of the first `n` bytes of `s` fit into STEM_MAX without cutting a UTF-8 character. */
static int whole_characters(const char *s, size_t n)
{
    if (n <= STEM_MAX)
        return (int)n;
    for (n = STEM_MAX; n && continues_character(s[n]); n--)
        ;
    return (int)n;
}

void exti__copy_name_api(const char *source, const char *context, unsigned generation, char *out)
{
    const char *base = visible_base(source), *so = strstr(base, ".so");
    size_t n = so ? (size_t)(so - base) + 3 : strlen(base);
    char more[16] = "";

    if (generation > 1)
        snprintf(more, sizeof more, ".%u", generation);
    snprintf(out, EXTI_FILE_NAME_MAX + 1, "%.*s.%s%s", whole_characters(base, n), base, context,
             more);
}

void exti__copy_name(const char *source, const char *context, char *out)
{
    const char *base = visible_base(source), *dot = base + strcspn(base, ".");
    int stem = whole_characters(base, (size_t)(dot - base));
    char tag[TAG_LENGTH + 1];

    if (strlen(dot) > SUFFIX_MAX)
        for (dot += strlen(dot) - SUFFIX_MAX; continues_character(*dot); dot++)
            ;
    base36(hash_text(source, FNV_START), tag);
    snprintf(out, EXTI_FILE_NAME_MAX + 1, "%.*s.%s-%s%s", stem ? stem : 1, stem ? base : "_",
             context, tag, dot);
}

static bool is_pe_copy(const char *file, const char *context);

bool exti__copy_name_is_of(const char *file, const char *context)
{
    char stable[EXTI_FILE_NAME_MAX + 1];
    const char *tag, *p = strchr(file, '.');
    size_t n = strlen(context);

    exti__copy_name_pe_stable_abi(context, stable);
    if (*context && (strcmp(file, stable) == 0 || is_pe_copy(file, context)))
        return true;
    if (!p || strncmp(p + 1, context, n) != 0 || p[1 + n] != '-')
        return false;
    tag = p + 1 + n + 1;
    return strspn(tag, digits) == TAG_LENGTH && (!tag[TAG_LENGTH] || tag[TAG_LENGTH] == '.');
}

void exti__copy_name_api_id(const char *old_id, const char *copy, char *out)
{
    size_t room = old_id ? strlen(old_id) : 0;

    snprintf(out, EXTI_FILE_NAME_MAX + 1, "%s", copy);
    if (room >= strlen(copy) || room < 2)
        return;
    /* The cut must leave some of the context's name, or the SONAME would be the original's. */
    if (strncmp(old_id, copy, room) != 0 && out[room - 1] != '.')
        out[room] = 0;
}

void exti__copy_name_install(const char *context, const char *copy, size_t room, char *out)
{
    static const char letters[] = "0123456789abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    uint64_t v = hash_text(copy, hash_text(context, FNV_START));
    size_t n = room < EXTI_INSTALL_LEAST + 1 ? EXTI_INSTALL_LEAST : room - 1;

    if (n > 10)
        n = 10;
    *out++ = '/';
    for (; n; n--, v /= 62)
        *out++ = letters[v % 62];
    *out = 0;
}

static void pe_tag(const char *context, unsigned generation, char *tag)
{
    if (strlen(context) == TAG_LENGTH && strspn(context, digits) == TAG_LENGTH && generation < 2)
        memcpy(tag, context, TAG_LENGTH + 1);
    else
        base36(hash_text(context, FNV_START ^ generation), tag);
}

void exti__copy_name_pe_api(const char *source, const char *context, unsigned generation, char *out)
{
    const char *base = visible_base(source), *dot = strrchr(base, '.');
    char tag[TAG_LENGTH + 1];

    pe_tag(context, generation, tag);
    snprintf(out, EXTI_FILE_NAME_MAX + 1, "p%s%s", tag, dot ? dot : "");
}

/* `c`, or '_' for a character that an import or a forwarder's library may not have. */
static char plain_character(char c)
{
    return c <= ' ' || c > '~' || strchr(".\\/:*?\"<>|", c) ? '_' : c;
}

#define PE_MARK (1 + 2 * TAG_LENGTH) /* "-", the context's tag, the source's */

void exti__copy_name_pe(const char *source, const char *context, char *out)
{
    const char *base = visible_base(source), *dot = strrchr(base, '.');
    const size_t stem = dot ? (size_t)(dot - base) : strlen(base);
    size_t n = stem > PE_MARK ? stem - PE_MARK : stem;
    char own[TAG_LENGTH + 1], tag[TAG_LENGTH + 1];

    if (n > STEM_MAX)
        n = STEM_MAX;
    for (size_t i = 0; i < n; i++)
        *out++ = plain_character(base[i]);
    pe_tag(context, 0, tag);
    base36(hash_text(source, FNV_START), own);
    snprintf(out, EXTI_FILE_NAME_MAX + 1 - STEM_MAX, "-%s%s.dll", tag, own);
}

/* Whether exti__copy_name_pe can have made `file`. */
static bool is_pe_copy(const char *file, const char *context)
{
    const char *dot = strchr(file, '.'), *mark = dot ? dot - PE_MARK : NULL;
    char tag[TAG_LENGTH + 1];

    pe_tag(context, 0, tag);
    return dot && dot - file > PE_MARK && strcmp(dot, ".dll") == 0 && *mark == '-' &&
           memcmp(mark + 1, tag, TAG_LENGTH) == 0 &&
           strspn(mark + 1 + TAG_LENGTH, digits) == TAG_LENGTH;
}

void exti__copy_name_pe_stable_abi(const char *context, char *out)
{
    char tag[TAG_LENGTH + 1];

    pe_tag(context, 0, tag);
    snprintf(out, EXTI_FILE_NAME_MAX + 1, "s%s.dll", tag);
}

bool exti__copy_name_pe_fits(const char *name)
{
    const char *dot = strchr(name, '.');
    size_t digits_at = 6;

    if (!dot || dot == name || strchr(dot + 1, '.') || strncasecmp(name, "api-", 4) == 0 ||
        strncasecmp(name, "ext-", 4) == 0)
        return false;
    if (strncasecmp(name, "python", digits_at) != 0)
        return true;
    digits_at += strspn(name + digits_at, "0123456789");
    return name + digits_at != dot || digits_at == 6;
}
