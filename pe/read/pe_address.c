/* Maps addresses in memory (RVAs) to bytes of the file. */
#include "pe/read/pe_address.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"

/* Bytes from the section's start to the start of the next. */
static uint64_t reach(const struct pe_file *f, const struct pe_section *s)
{
    uint64_t n = s->virtual_size;

    exti__align(n, f->section_alignment, &n);
    return n;
}

const struct pe_section *exti__pe_section_of(const struct pe_file *f, uint32_t rva)
{
    for (size_t i = 0; i < f->section_count; i++) {
        const struct pe_section *s = &f->sections[i];

        if (rva >= s->rva && rva - s->rva < reach(f, s))
            return s;
    }
    return NULL;
}

int exti__pe_from(const struct pe_file *f, uint32_t rva, const char *what, struct exti_span *out,
                  struct exti_error *err)
{
    const struct pe_section *s = exti__pe_section_of(f, rva);
    uint64_t n;

    if (!s && rva < f->size_of_headers)
        return exti__span_sub(f->file, rva, f->size_of_headers - rva, what, out, err);
    if (!s)
        return exti__fail(err, EXTI_E_FORMAT, EXTI_NO_OFFSET,
                          "%s: RVA 0x%" PRIx32 " is in no section", what, rva);
    n = reach(f, s);
    if (n > s->raw_size)
        n = s->raw_size;
    if (rva - s->rva >= n)
        return exti__fail(err, EXTI_E_FORMAT, EXTI_NO_OFFSET,
                          "%s: RVA 0x%" PRIx32 " is in section %s, past its bytes in the file",
                          what, rva, s->name);
    return exti__span_sub(f->file, (uint64_t)s->raw_offset + (rva - s->rva), n - (rva - s->rva),
                          what, out, err);
}

int exti__pe_at(const struct pe_file *f, uint32_t rva, uint64_t len, const char *what,
                struct exti_span *out, struct exti_error *err)
{
    struct exti_span s;
    int rc = exti__pe_from(f, rva, what, &s, err);

    return rc ? rc : exti__span_sub(s, 0, len, what, out, err);
}

int exti__pe_string(const struct pe_file *f, uint32_t rva, size_t most, const char *what,
                    const char **out, struct exti_error *err)
{
    struct exti_span s;
    int rc = exti__pe_from(f, rva, what, &s, err);

    if (rc)
        return rc;
    if (s.n > most && !memchr(s.p, 0, most + 1))
        return exti__fail(err, EXTI_E_FORMAT, s.base, "%s: string is longer than %zu bytes", what,
                          most);
    return exti__span_cstr(s, 0, what, out, err);
}

int exti__pe_error_at(int rc, uint64_t at, struct exti_error *err)
{
    if (rc == EXTI_E_FORMAT && err && err->offset == EXTI_NO_OFFSET)
        err->offset = at;
    return rc;
}
