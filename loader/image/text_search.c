/* Names of libraries as text: what a file may ask the system for as it runs, which no import
 * tells. */
#include <string.h>

#include "base/format.h"

static uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c - 'A' + 'a') : c;
}

static bool continues_name(uint8_t c)
{
    c = lower(c);
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/* Whether `name` stands at `at`, a character every `width` bytes, and not as a part of a longer
 * one. */
static bool is_at(struct exti_span file, size_t at, const char *name, size_t n, size_t width)
{
    const uint8_t *p = file.p + at;

    if (file.n - at < n * width)
        return false;
    for (size_t i = 0; i < n; i++)
        if (lower(p[i * width]) != lower((uint8_t)name[i]) || (width == 2 && p[2 * i + 1]))
            return false;
    if (at >= width && continues_name(p[-(ptrdiff_t)width]) && (width == 1 || !p[-1]))
        return false;
    p += n * width;
    return file.n - at - n * width < width || !continues_name(*p) || (width == 2 && p[1]);
}

static bool holds(const char *text, const struct exti_image *im, size_t at)
{
    const char *p = (const char *)im->bytes.p + at;

    return text && p >= text && p < text + strlen(text);
}

/* The loader's own references to the name. */
static bool is_reference(const struct exti_image *im, size_t at)
{
    if (holds(im->info.id, im, at))
        return true;
    for (size_t i = 0; i < im->info.needed_count; i++)
        if (holds(im->needed[i].name, im, at))
            return true;
    for (size_t i = 0; i < im->path_count; i++)
        if (holds(im->paths[i], im, at))
            return true;
    return false;
}

uint64_t exti_image_mention(const struct exti_image *im, const char *name, uint64_t from)
{
    const size_t n = name ? strlen(name) : 0;
    uint8_t first;

    if (!im || !n || from > im->bytes.n)
        return EXTI_NO_OFFSET;
    first = lower((uint8_t)name[0]);
    for (size_t at = (size_t)from; at < im->bytes.n; at++)
        if (lower(im->bytes.p[at]) == first &&
            (is_at(im->bytes, at, name, n, 1) || is_at(im->bytes, at, name, n, 2)) &&
            !is_reference(im, at))
            return at;
    return EXTI_NO_OFFSET;
}
