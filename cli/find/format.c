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

enum cli_magic cli_magic_of(const char *path)
{
    static const unsigned char machos[][4] = {
        {0xcf, 0xfa, 0xed, 0xfe}, {0xce, 0xfa, 0xed, 0xfe}, {0xfe, 0xed, 0xfa, 0xcf},
        {0xfe, 0xed, 0xfa, 0xce}, {0xca, 0xfe, 0xba, 0xbe}, {0xca, 0xfe, 0xba, 0xbf},
    };
    unsigned char head[4];
    FILE *f = cli_open(path);
    size_t n;

    if (f == NULL)
        return CLI_MAGIC_UNREADABLE;
    n = fread(head, 1, sizeof head, f);
    fclose(f);
    if (n < sizeof head)
        return n == 0 ? CLI_MAGIC_EMPTY : CLI_MAGIC_OTHER;
    if (memcmp(head, "MZ", 2) == 0)
        return CLI_MAGIC_PE;
    if (memcmp(head, "\177ELF", sizeof head) == 0)
        return CLI_MAGIC_ELF;
    for (size_t i = 0; i < sizeof machos / sizeof *machos; i++)
        if (memcmp(head, machos[i], sizeof head) == 0)
            return CLI_MAGIC_MACHO;
    return CLI_MAGIC_OTHER;
}
