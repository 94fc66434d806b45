/* LC_DYLD_CHAINED_FIXUPS: <mach-o/fixup-chains.h>. */
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "macho/read/macho_priv.h"

#define HEADER_SIZE 28u
#define POINTER 8u

/* An import table's formats, by the number that the header tells. */
static const struct import_format {
    uint32_t entry, max_ordinal;
} formats[] = {
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

static uint64_t entry_offset(const struct macho_chained *c, uint32_t i)
{
    return c->imports_offset + (uint64_t)i * formats[c->imports_format].entry;
}

/* An import as its entry tells it. */
struct entry {
    int32_t ordinal;
    bool weak;
    uint32_t name;
    int64_t addend;
};

static int read_entry(const struct macho_chained *c, uint32_t i, struct entry *out,
                      struct exti_error *err)
{
    struct exti_span s;
    struct exti_cur cur;
    uint64_t v;
    int rc;

    if (i >= c->imports_count)
        return exti__fail(err, EXTI_E_FORMAT, c->s.base + c->imports_offset,
                          "chained fixups: import %u of %u", i, c->imports_count);
    rc = exti__span_sub(c->s, entry_offset(c, i), formats[c->imports_format].entry,
                        "chained fixups: import", &s, err);
    if (rc)
        return rc;
    cur = exti__cur(s, false);
    if (c->imports_format == DYLD_CHAINED_IMPORT_ADDEND64) {
        v = exti__cur_u64(&cur);
        *out = (struct entry){.ordinal = (int32_t)(v & 0xffff),
                              .weak = v >> 16 & 1,
                              .name = (uint32_t)(v >> 32),
                              .addend = (int64_t)exti__cur_u64(&cur)};
    } else {
        v = exti__cur_u32(&cur);
        *out = (struct entry){
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
    struct entry e;
    const char *name;
    int rc = read_entry(c, i, &e, err);

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
                                 .at = c->at + entry_offset(c, i)};
    return 0;
}

static int put_entry(struct exti_buf *out, uint64_t at, uint32_t format, const struct entry *e,
                     struct exti_error *err)
{
    uint8_t bytes[16];

    if (format == DYLD_CHAINED_IMPORT_ADDEND64) {
        exti__put_u64(bytes,
                      ((uint32_t)e->ordinal & 0xffffu) | (uint64_t)e->weak << 16 |
                          (uint64_t)e->name << 32,
                      false);
        exti__put_u64(bytes + 8, (uint64_t)e->addend, false);
    } else {
        exti__put_u32(bytes, ((uint32_t)e->ordinal & 0xffu) | (uint32_t)e->weak << 8 | e->name << 9,
                      false);
        exti__put_u32(bytes + 4, (uint32_t)e->addend, false);
    }
    return exti__buf_patch(out, (size_t)at, bytes, formats[format].entry, err);
}

/* The payload up to the imports, room for them in the widest format, and the names. */
static int widen(const struct macho_chained *c, struct macho_chained *to, struct exti_buf *out,
                 struct exti_error *err)
{
    uint8_t header[12];
    int rc;

    if (c->starts_offset >= c->imports_offset)
        return exti__fail(err, EXTI_E_UNSUPPORTED, c->s.base + 4,
                          "chained fixups: the starts do not precede the imports");
    rc = exti__buf_append(out, c->s.p, c->imports_offset, err);
    if (!rc)
        rc = exti__buf_align(out, 8, err);
    *to = *c;
    to->imports_format = DYLD_CHAINED_IMPORT_ADDEND64;
    to->imports_offset = (uint32_t)out->n;
    if (!rc)
        rc =
            exti__buf_zeros(out, (size_t)c->imports_count * formats[to->imports_format].entry, err);
    if (!rc && out->n > UINT32_MAX)
        rc = exti__fail(err, EXTI_E_UNSUPPORTED, c->s.base, "chained fixups: too many imports");
    to->symbols_offset = (uint32_t)out->n;
    if (!rc)
        rc = exti__buf_append(out, c->s.p + c->symbols_offset, c->s.n - c->symbols_offset, err);
    if (!rc)
        rc = exti__buf_align(out, 8, err);
    exti__put_u32(header, to->imports_offset, false);
    exti__put_u32(header + 4, to->symbols_offset, false);
    exti__put_u32(header + 8, to->imports_format, false);
    if (!rc)
        rc = exti__buf_patch(out, 8, header, 8, err);
    return rc ? rc : exti__buf_patch(out, 20, header + 8, 4, err);
}

int exti__macho_chained_set_ordinals(const struct macho_chained *c, const int32_t *ordinals,
                                     struct exti_buf *out, struct exti_error *err)
{
    struct macho_chained to = *c;
    int32_t max = 0;
    int rc;

    for (uint32_t i = 0; i < c->imports_count; i++)
        max = ordinals[i] > max ? ordinals[i] : max;
    if (max > (int32_t)formats[DYLD_CHAINED_IMPORT_ADDEND64].max_ordinal)
        return exti__fail(err, EXTI_E_UNSUPPORTED, c->s.base,
                          "chained fixups: library %d is past the last that imports can name", max);
    if (max > (int32_t)formats[c->imports_format].max_ordinal)
        rc = widen(c, &to, out, err);
    else
        rc = exti__buf_append(out, c->s.p, c->s.n, err);
    for (uint32_t i = 0; !rc && i < c->imports_count; i++) {
        struct entry e;

        rc = read_entry(c, i, &e, err);
        if (!rc && to.imports_format == c->imports_format && e.ordinal == ordinals[i])
            continue;
        e.ordinal = ordinals[i];
        if (!rc)
            rc = put_entry(out, entry_offset(&to, i), to.imports_format, &e, err);
    }
    return rc;
}
