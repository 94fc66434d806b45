/* Writing the imports of LC_DYLD_CHAINED_FIXUPS. */
#include "macho/edit/macho_chained_write.h"

#include "base/error.h"

static int put_entry(struct exti_buf *out, uint64_t at, uint32_t format,
                     const struct macho_import_entry *e, struct exti_error *err)
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
    return exti__buf_patch(out, (size_t)at, bytes, exti__macho_import_format(format)->entry, err);
}

/* Copies the payload with space for the imports in the widest format. */
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
        rc = exti__buf_zeros(
            out, (size_t)c->imports_count * exti__macho_import_format(to->imports_format)->entry,
            err);
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
    if (max > (int32_t)exti__macho_import_format(DYLD_CHAINED_IMPORT_ADDEND64)->max_ordinal)
        return exti__fail(err, EXTI_E_UNSUPPORTED, c->s.base,
                          "chained fixups: library ordinal %d is larger than imports can hold",
                          max);
    if (max > (int32_t)exti__macho_import_format(c->imports_format)->max_ordinal)
        rc = widen(c, &to, out, err);
    else
        rc = exti__buf_append(out, c->s.p, c->s.n, err);
    for (uint32_t i = 0; !rc && i < c->imports_count; i++) {
        struct macho_import_entry e;

        rc = exti__macho_import_entry(c, i, &e, err);
        if (!rc && to.imports_format == c->imports_format && e.ordinal == ordinals[i])
            continue;
        e.ordinal = ordinals[i];
        if (!rc)
            rc = put_entry(out, exti__macho_import_offset(&to, i), to.imports_format, &e, err);
    }
    return rc;
}
