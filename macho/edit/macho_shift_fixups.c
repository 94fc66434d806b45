/* Shifting fixups: a rebased pointer in the file holds the address, or the offset from the
 * image's start, of something that moved.  Fixups locate slots by segment, so only the chains'
 * segment offsets change besides. */
#include "macho/edit/macho_shift_fixups.h"

#include <inttypes.h>

#include "base/checked.h"
#include "base/error.h"
#include "macho/edit/macho_shift_place.h"
#include "macho/read/macho_bind.h"
#include "macho/read/macho_fixups.h"
#include "macho/read/macho_rebase.h"
#include "macho/read/macho_word.h"

#define TARGET_MASK (((uint64_t)1 << 36) - 1) /* dyld_chained_ptr_64_rebase.target */

/* ---- LC_DYLD_INFO ---------------------------------------------------------------------------- */

static int move_rebase(void *user, uint32_t segment, uint64_t offset, uint8_t type,
                       struct exti_error *err)
{
    struct macho_build *b = user;
    const struct macho_segment *seg = &b->f->segments[segment];
    uint64_t at = b->f->file.base + seg->fileoff, value;
    uint8_t *p;
    int rc;

    if (offset > seg->filesize || seg->filesize - offset < 8)
        return exti__fail(err, EXTI_E_FORMAT, at,
                          "rebase at offset 0x%" PRIx64 " of segment %s, which has 0x%" PRIx64
                          " bytes in the file",
                          offset, seg->name, seg->filesize);
    at += offset;
    if (seg == b->f->text)
        return exti__fail(err, EXTI_E_UNSUPPORTED, at, "rebase in __TEXT cannot be moved");
    if (type != REBASE_TYPE_POINTER)
        return exti__fail(err, EXTI_E_UNSUPPORTED, at,
                          "rebase of type %u cannot be moved, only pointers (1)", type);
    rc = exti__macho_shift_body(b, seg->fileoff + offset, 8, "rebased pointer", &p, err);
    if (rc)
        return rc;
    value = exti__macho_u64(p);
    if (!exti__add(value, b->shift, &value))
        return exti__fail(err, EXTI_E_UNSUPPORTED, at,
                          "rebased pointer 0x%" PRIx64 " would overflow", value);
    exti__put_u64(p, value, false);
    return 0;
}

static int refuse_bind_in_text(void *user, const struct macho_bind *x, struct exti_error *err)
{
    const struct macho_build *b = user;

    if (!x->is_override && &b->f->segments[x->segment] == b->f->text)
        return exti__fail(err, EXTI_E_UNSUPPORTED, b->f->file.base + x->at,
                          "binding of %s in __TEXT cannot be moved", x->symbol);
    return 0;
}

static int move_opcodes(struct macho_build *b, struct exti_error *err)
{
    static const enum macho_piece_kind streams[] = {MACHO_BIND, MACHO_WEAK_BIND, MACHO_LAZY_BIND};
    int rc = exti__macho_rebases(b->f, move_rebase, b, err);

    for (size_t i = 0; !rc && i < sizeof streams / sizeof *streams; i++)
        rc = exti__macho_binds(b->f, streams[i], refuse_bind_in_text, b, err);
    return rc;
}

/* ---- chained fixups -------------------------------------------------------------------------- */

static int move_fixup(void *user, const struct macho_fixup *x, struct exti_error *err)
{
    struct macho_build *b = user;
    const uint64_t at = b->f->file.base + x->offset;
    uint64_t target;
    uint8_t *p;
    int rc;

    if (x->format != DYLD_CHAINED_PTR_64 && x->format != DYLD_CHAINED_PTR_64_OFFSET)
        return exti__fail(err, EXTI_E_UNSUPPORTED, at,
                          "chained fixup of format %u cannot be moved, only 2 and 6", x->format);
    if (x->offset < b->f->text->filesize)
        return exti__fail(err, EXTI_E_UNSUPPORTED, at, "chained fixup in __TEXT cannot be moved");
    if (x->is_bind)
        return 0;
    rc = exti__macho_shift_body(b, x->offset, 8, "chained fixup", &p, err);
    if (rc)
        return rc;
    target = (x->raw & TARGET_MASK) + b->shift;
    if (target > TARGET_MASK)
        return exti__fail(err, EXTI_E_UNSUPPORTED, at,
                          "chained fixup's target 0x%" PRIx64 " does not fit 36 bits", target);
    exti__put_u64(p, (x->raw & ~TARGET_MASK) | target, false);
    return 0;
}

/* Shifts one dyld_chained_starts_in_segment at offset `off` of the payload `s`, whose writable
 * bytes are `p`. */
static int move_starts(const struct macho_build *b, const struct macho_segment *seg,
                       struct exti_span s, uint8_t *p, uint64_t off, struct exti_error *err)
{
    struct exti_span starts;
    struct exti_cur c;
    uint64_t segment_offset;
    uint32_t max_pointer;
    int rc = exti__span_sub(s, off, 22, "dyld_chained_starts_in_segment", &starts, err);

    if (rc)
        return rc;
    c = exti__cur(starts, false);
    exti__cur_skip(&c, 8);
    segment_offset = exti__cur_u64(&c);
    max_pointer = exti__cur_u32(&c);
    if (seg != b->f->text) {
        if (!exti__add(segment_offset, b->shift, &segment_offset))
            return exti__fail(err, EXTI_E_FORMAT, starts.base,
                              "chained fixups of segment %s: offset overflows", seg->name);
        exti__put_u64(p + off + 8, segment_offset, false);
    }
    if (!max_pointer) /* 64-bit formats leave it 0 */
        return 0;
    return exti__macho_shift_u32(p + off + 16, b->shift, starts.base + 16,
                                 "chained fixups' max_valid_pointer", err);
}

static int move_chains(struct macho_build *b, struct exti_error *err)
{
    struct macho_chained chained;
    struct exti_buf *buf;
    struct exti_span s, table;
    struct exti_cur c;
    uint32_t starts, count;
    int rc = exti__macho_chained_open(b->f, &chained, err);

    if (!rc)
        rc = exti__macho_fixups(b->f, &chained, move_fixup, b, err);
    if (!rc)
        rc = exti__macho_shift_piece(b, MACHO_CHAINED_FIXUPS, &buf, err);
    if (rc)
        return rc;
    s = exti__span(buf->p, buf->n);
    s.base = chained.s.base;
    c = exti__cur(s, false);
    exti__cur_skip(&c, 4);
    starts = exti__cur_u32(&c);
    rc = exti__cur_end(&c, "chained fixups header", err);
    if (!rc)
        rc = exti__span_sub(s, starts, 4, "dyld_chained_starts_in_image", &table, err);
    if (rc)
        return rc;
    c = exti__cur(table, false);
    count = exti__cur_u32(&c);
    rc = exti__span_table(s, (uint64_t)starts + 4, count, 4, "dyld_chained_starts_in_image", &table,
                          err);
    c = exti__cur(table, false);
    for (uint32_t i = 0; !rc && i < count; i++) {
        const uint32_t off = exti__cur_u32(&c);

        if (off && i < b->f->segment_count)
            rc = move_starts(b, &b->f->segments[i], s, buf->p, (uint64_t)starts + off, err);
    }
    return rc;
}

int exti__macho_shift_fixups(struct macho_build *b, struct exti_error *err)
{
    int rc = 0;

    if (b->f->pieces[MACHO_CHAINED_FIXUPS].s.n)
        rc = move_chains(b, err);
    return rc ? rc : move_opcodes(b, err);
}
