#include "base/image.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"

static const char *const format_names[] = {NULL, "ELF", "Mach-O", "PE"};

const char *exti__format_name(enum exti_file_format format)
{
    return format_names[format];
}

enum exti_file_format exti__format_named(const char *name)
{
    for (size_t i = 1; i < sizeof format_names / sizeof *format_names; i++)
        if (strcmp(format_names[i], name) == 0)
            return (enum exti_file_format)i;
    return EXTI_FORMAT_NONE;
}

void exti__image_clear(struct exti_image *im)
{
    exti__free(im->build_id);
    exti__free(im->needed);
    exti__free(im->symbols);
    exti__free(im->strings);
    exti__free(im->paths);
    for (size_t i = 0; i < im->info.slice_count; i++)
        exti__image_clear(&im->slices[i]);
    exti__free(im->slices);
    *im = (struct exti_image){0};
}

const struct exti_image *exti__image_part(const struct exti_image *im, size_t i)
{
    if (!im->info.slice_count)
        return i ? NULL : im;
    return i < im->info.slice_count ? &im->slices[i] : NULL;
}

int exti__image_add_needed(struct exti_image *im, const char *name, uint32_t flags,
                           struct exti_error *err)
{
    struct exti_image_needed *p =
        exti__array_room(im->needed, im->info.needed_count, &im->needed_cap, sizeof *p);

    if (!p)
        return exti__fail_nomem(err);
    im->needed = p;
    p[im->info.needed_count++] = (struct exti_image_needed){name, flags};
    return 0;
}

int exti__image_add_path(struct exti_image *im, const char *path, struct exti_error *err)
{
    const char **p = exti__array_room(im->paths, im->path_count, &im->path_cap, sizeof *p);

    if (!p)
        return exti__fail_nomem(err);
    im->paths = p;
    p[im->path_count++] = path;
    return 0;
}

bool exti__image_exports(const struct exti_image *im, uint32_t flags)
{
    for (size_t i = 0; i < im->info.symbol_count; i++)
        if ((im->symbols[i].flags & EXTI_SYM_EXPORT) && (im->symbols[i].flags & flags))
            return true;
    return false;
}

int exti__image_add_symbol(struct exti_image *im, struct exti_image_symbol s,
                           struct exti_error *err)
{
    struct exti_image_symbol *p =
        exti__array_room(im->symbols, im->info.symbol_count, &im->symbol_cap, sizeof *p);

    if (!p)
        return exti__fail_nomem(err);
    im->symbols = p;
    p[im->info.symbol_count++] = s;
    return 0;
}
