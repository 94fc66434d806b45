#include "cli/find/format.h"

#include <stdio.h>
#include <string.h>

#include "cli/os/system.h"

static bool has_format(const struct exti_image *im, const char *format)
{
    struct exti_image_info info = {.size = sizeof info};

    return exti_image_info(im, &info) == 0 && strcmp(info.format, format) == 0;
}

bool cli_is_macho(const struct exti_image *im)
{
    return has_format(im, "Mach-O");
}

bool cli_is_pe(const struct exti_image *im)
{
    return has_format(im, "PE");
}

bool cli_same_target(const struct exti_image_info *a, const struct exti_image_info *b)
{
    return strcmp(a->format, b->format) == 0 && strcmp(a->machine, b->machine) == 0 &&
           a->bits == b->bits && a->big_endian == b->big_endian;
}

bool cli_read_head(const char *path, unsigned char head[4], size_t *n)
{
    FILE *f = cli_open(path);

    if (f == NULL)
        return false;
    *n = fread(head, 1, 4, f);
    fclose(f);
    return true;
}
