/* Reporting findings, and what several checks ask about the two files. */
#include "macho/check/macho_check_report.h"

#include <stdarg.h>
#include <string.h>

static uint64_t absolute(const struct macho_file *f, uint64_t at)
{
    return at == EXTI_NO_OFFSET ? at : f->file.base + at;
}

void exti__macho_finding(struct macho_check *c, uint64_t at, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    exti__findings_report(&c->judge, absolute(&c->after, at), fmt, ap);
    va_end(ap);
}

void exti__macho_broken(struct macho_check *c, const struct macho_file *f, uint64_t at,
                        const char *subject, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    exti__findings_broken(&c->judge, absolute(f, at), subject, fmt, ap);
    va_end(ap);
}

bool exti__macho_gate(const struct macho_file *f, uint32_t sdk)
{
    return f->platform == PLATFORM_MACOS && f->sdk >= sdk;
}

bool exti__macho_same_piece(const struct macho_check *c, enum macho_piece_kind kind)
{
    const struct exti_span b = c->before.pieces[kind].s, a = c->after.pieces[kind].s;

    return b.n == a.n && (!b.n || memcmp(b.p, a.p, b.n) == 0);
}

bool exti__macho_settled(const struct macho_check *c, const struct macho_file *f,
                         enum macho_piece_kind kind)
{
    return !f->pieces[kind].s.n ||
           (!c->judge.strict && !c->shift && exti__macho_same_piece(c, kind));
}

size_t exti__macho_most_ordinal(const struct macho_file *f)
{
    return f->dylib_count ? f->dylib_count : 1;
}

const char *exti__macho_library_of(const struct macho_file *f, int32_t ordinal)
{
    return ordinal > 0 && (size_t)ordinal <= f->dylib_count ? f->dylibs[ordinal - 1].name : NULL;
}
