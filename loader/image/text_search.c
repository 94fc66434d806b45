/* Searches a file for library names as text: a file may pass them to dlopen or LoadLibrary,
 * which no import shows. */
#include <string.h>

#include "loader/image/inspect.h"

static uint8_t to_lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c - 'A' + 'a') : c;
}

static bool continues_name(uint8_t c)
{
    c = to_lower(c);
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/* Whether `name` is at `at`, one character every `width` bytes, and not as part of a longer
 * name. */
static bool is_at(struct exti_span file, size_t at, const char *name, size_t n, size_t width)
{
    const uint8_t *p = file.p + at;

    if (file.n - at < n * width)
        return false;
    for (size_t i = 0; i < n; i++)
        if (to_lower(p[i * width]) != to_lower((uint8_t)name[i]) || (width == 2 && p[2 * i + 1]))
            return false;
    if (at >= width && continues_name(p[-(ptrdiff_t)width]) && (width == 1 || !p[-1]))
        return false;
    p += n * width;
    return file.n - at - n * width < width || !continues_name(*p) || (width == 2 && p[1]);
}

static bool spans_offset(const char *text, const struct exti_image *im, size_t at)
{
    const char *p = (const char *)im->bytes.p + at;

    return text && p >= text && p < text + strlen(text);
}

/* Whether the text at `at` is the file's own name, a needed library or a search path, which the
 * loader reads. */
static bool is_reference(const struct exti_image *im, size_t at)
{
    if (spans_offset(im->info.id, im, at))
        return true;
    for (size_t i = 0; i < im->info.needed_count; i++)
        if (spans_offset(im->needed[i].name, im, at))
            return true;
    for (size_t i = 0; i < im->path_count; i++)
        if (spans_offset(im->paths[i], im, at))
            return true;
    return false;
}

uint64_t exti_image_mention(const struct exti_image *im, const char *name, uint64_t from)
{
    const size_t n = name ? strlen(name) : 0;
    struct exti_span file;
    uint8_t first;

    if (!im || !n || from > im->bytes.n)
        return EXTI_NO_OFFSET;
    file = exti__inspected_whole(im);
    first = to_lower((uint8_t)name[0]);
    for (size_t at = (size_t)from; at < file.n; at++)
        if (to_lower(file.p[at]) == first &&
            (is_at(file, at, name, n, 1) || is_at(file, at, name, n, 2)) && !is_reference(im, at))
            return at;
    return EXTI_NO_OFFSET;
}
