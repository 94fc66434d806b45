/* LC_DYLD_CHAINED_FIXUPS: <mach-o/fixup-chains.h>. */
#include "macho/read/macho_chained.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"

#define HEADER_SIZE 28u
#define POINTER 8u

/* By imports_format. */
static const struct macho_import_format formats[] = {
    [DYLD_CHAINED_IMPORT] = {4, 0xf0},
    [DYLD_CHAINED_IMPORT_ADDEND] = {8, 0xf0},
    [DYLD_CHAINED_IMPORT_ADDEND64] = {16, 0xfff0},
};

int exti__macho_chained_open(const struct macho_file *f, struct macho_chained *c,
                             struct exti_error *err)
{
    struct exti_span s = f->pieces[MACHO_CHAINED_FIXUPS].s;
    struct macho_chained out = {.s = s, .at = s.base - f->file.base};
    struct exti_cur cur = exti__cur(s, false);
    uint32_t version = exti__cur_u32(&cur), symbols_format;
    uint64_t end;
    int rc;

    out.starts_offset = exti__cur_u32(&cur);
    out.imports_offset = exti__cur_u32(&cur);
    out.symbols_offset = exti__cur_u32(&cur);
    out.imports_count = exti__cur_u32(&cur);
    out.imports_format = exti__cur_u32(&cur);
    symbols_format = exti__cur_u32(&cur);
    rc = exti__cur_end(&cur, "chained fixups: header", err);
    if (rc)
        return rc;
    if (version)
        return exti__fail(err, EXTI_E_UNSUPPORTED, s.base, "chained fixups: version %u", version);
    if (symbols_format)
        return exti__fail(err, EXTI_E_UNSUPPORTED, s.base + 24,
                          "chained fixups: the names are compressed (format %u)", symbols_format);
    if (!out.imports_format || out.imports_format > DYLD_CHAINED_IMPORT_ADDEND64)
        return exti__fail(err, EXTI_E_UNSUPPORTED, s.base + 20, "chained fixups: imports format %u",
                          out.imports_format);
    if (out.starts_offset < HEADER_SIZE || out.starts_offset > s.n)
        return exti__fail(err, EXTI_E_FORMAT, s.base + 4, "chained fixups: starts at %u of %zu",
                          out.starts_offset, s.n);
    end = out.imports_offset + (uint64_t)out.imports_count * formats[out.imports_format].entry;
    if (out.imports_offset < HEADER_SIZE || end > out.symbols_offset || out.symbols_offset > s.n)
        return exti__fail(err, EXTI_E_FORMAT, s.base + 8,
                          "chained fixups: imports from %u to %" PRIu64 ", names from %u to %zu",
                          out.imports_offset, end, out.symbols_offset, s.n);
    *c = out;
    return 0;
}

const struct macho_import_format *exti__macho_import_format(uint32_t format)
{
    return &formats[format];
}

uint64_t exti__macho_import_offset(const struct macho_chained *c, uint32_t i)
{
    return c->imports_offset + (uint64_t)i * formats[c->imports_format].entry;
}

int exti__macho_import_entry(const struct macho_chained *c, uint32_t i,
                             struct macho_import_entry *out, struct exti_error *err)
{
    struct exti_span s;
    struct exti_cur cur;
    uint64_t v;
    int rc;

    if (i >= c->imports_count)
        return exti__fail(err, EXTI_E_FORMAT, c->s.base + c->imports_offset,
                          "chained fixups: import %u of %u", i, c->imports_count);
    rc = exti__span_sub(c->s, exti__macho_import_offset(c, i), formats[c->imports_format].entry,
                        "chained fixups: import", &s, err);
    if (rc)
        return rc;
    cur = exti__cur(s, false);
    if (c->imports_format == DYLD_CHAINED_IMPORT_ADDEND64) {
        v = exti__cur_u64(&cur);
        *out = (struct macho_import_entry){.ordinal = (int32_t)(v & 0xffff),
                                           .weak = v >> 16 & 1,
                                           .name = (uint32_t)(v >> 32),
                                           .addend = (int64_t)exti__cur_u64(&cur)};
    } else {
        v = exti__cur_u32(&cur);
        *out = (struct macho_import_entry){
            .ordinal = (int32_t)(v & 0xff), .weak = v >> 8 & 1, .name = (uint32_t)(v >> 9)};
        if (c->imports_format == DYLD_CHAINED_IMPORT_ADDEND)
            out->addend = (int32_t)exti__cur_u32(&cur);
    }
    if (out->ordinal > (int32_t)formats[c->imports_format].max_ordinal)
        out->ordinal -= c->imports_format == DYLD_CHAINED_IMPORT_ADDEND64 ? 0x10000 : 0x100;
    if (out->ordinal < BIND_SPECIAL_DYLIB_WEAK_LOOKUP)
        return exti__fail(err, EXTI_E_FORMAT, s.base, "chained fixups: import %u: library %d", i,
                          out->ordinal);
    return 0;
}

int exti__macho_chained_import(const struct macho_chained *c, uint32_t i, struct macho_import *out,
                               struct exti_error *err)
{
    struct exti_span names;
    struct macho_import_entry e;
    const char *name;
    int rc = exti__macho_import_entry(c, i, &e, err);

    if (!rc)
        rc = exti__span_sub(c->s, c->symbols_offset, c->s.n - c->symbols_offset,
                            "chained fixups: names", &names, err);
    if (!rc)
        rc = exti__span_cstr(names, e.name, "chained fixups: an import's name", &name, err);
    if (rc)
        return rc;
    *out = (struct macho_import){.name = name,
                                 .ordinal = e.ordinal,
                                 .weak = e.weak,
                                 .addend = e.addend,
                                 .at = c->at + exti__macho_import_offset(c, i)};
    return 0;
}
