#include "loader/resolve/elf_kind.h"

#include <elf.h>
#include <string.h>

#include "base/error.h"

int exti__elf_kind(struct exti_span file, struct exti_elf_kind *out, struct exti_error *err)
{
    struct exti_cur cur;

    if (file.n < SELFMAG || memcmp(file.p, ELFMAG, SELFMAG) != 0)
        return exti__fail(err, EXTI_E_FORMAT, 0, "is in the search path but is not an ELF file");
    if (file.n < EI_NIDENT + 4)
        return exti__fail(err, EXTI_E_FORMAT, 0,
                          "is in the search path but too short for an ELF header");
    out->class = file.p[EI_CLASS];
    out->data = file.p[EI_DATA];
    cur = exti__cur(file, out->data == ELFDATA2MSB);
    exti__cur_skip(&cur, EI_NIDENT + 2);
    out->machine = exti__cur_u16(&cur);
    return 0;
}

uint32_t exti__elf_kind_in_cache(struct exti_elf_kind k)
{
    static const struct {
        uint16_t machine;
        uint8_t class;
        uint32_t kind;
    } kinds[] = {
        {EM_X86_64, ELFCLASS64, 0x0303},  {EM_X86_64, ELFCLASS32, 0x0803},
        {EM_386, ELFCLASS32, 0x0003},     {EM_AARCH64, ELFCLASS64, 0x0a03},
        {EM_ARM, ELFCLASS32, 0x0903},     {EM_S390, ELFCLASS64, 0x0403},
        {EM_PPC64, ELFCLASS64, 0x0503},   {EM_RISCV, ELFCLASS64, 0x1003},
        {EM_SPARCV9, ELFCLASS64, 0x0103},
    };

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].machine == k.machine && kinds[i].class == k.class)
            return kinds[i].kind;
    return 0;
}
