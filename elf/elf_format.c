#include "elf/elf_format.h"

#include <string.h>

#include "elf/read/elf_priv.h"

static bool probe(struct exti_span file)
{
    return file.n >= SELFMAG && memcmp(file.p, ELFMAG, SELFMAG) == 0;
}

const struct exti_format_ops exti__elf_format = {
    .format = EXTI_FORMAT_ELF,
    .probe = probe,
    .read = exti__elf_read,
    .plan = exti__elf_plan,
    .check = exti__elf_check,
};
