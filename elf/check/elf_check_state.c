#include "elf/check/elf_check_state.h"

#include <stdarg.h>
#include <stdio.h>

void exti__elf_finding(struct elf_check *c, uint64_t offset, const char *fmt, ...)
{
    struct exti_error finding = {.code = EXTI_E_CHECK, .offset = offset};
    va_list ap;

    if (c->stop)
        return;
    va_start(ap, fmt);
    vsnprintf(finding.message, sizeof finding.message, fmt, ap);
    va_end(ap);
    c->stop = c->report(c->user, &finding) != 0;
}

const char *exti__elf_check_text(const struct elf_file *f, uint64_t off)
{
    const char *text;

    return exti__elf_str(f, off, "", &text, NULL) ? NULL : text;
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
