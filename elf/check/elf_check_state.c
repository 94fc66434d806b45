#include "elf/check/elf_check_state.h"

#include <stdarg.h>

void exti__elf_finding(struct elf_check *c, uint64_t offset, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    exti__findings_report(&c->findings, offset, fmt, ap);
    va_end(ap);
}

const GElf_Phdr *exti__elf_original(const struct elf_check *c, size_t j)
{
    return c->match[j] == ELF_NO_MATCH ? NULL : &c->before.phdr[c->match[j]];
}

const char *exti__elf_check_text(const struct elf_file *f, uint64_t off)
{
    const char *text;

    return exti__elf_string(f, off, "", &text, NULL) ? NULL : text;
}

const char *exti__elf_check_tag_text(const struct elf_file *f, int64_t tag)
{
    const GElf_Dyn *d = exti__elf_tag(f, tag);

    return d ? exti__elf_check_text(f, d->d_un.d_val) : NULL;
}

bool exti__elf_is_defined(const GElf_Sym *s)
{
    return s->st_shndx != SHN_UNDEF && GELF_ST_BIND(s->st_info) != STB_LOCAL;
}
