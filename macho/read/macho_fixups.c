/* The chains of LC_DYLD_CHAINED_FIXUPS: the slots, and the value that each receives. */
#include "macho/read/macho_fixups.h"

#include <inttypes.h>

#include "base/error.h"

#define POINTER 8u
#define STARTS_SIZE 22u /* size of a dyld_chained_starts_in_segment without page starts */

/* One segment's chains. */
struct chains {
    const struct macho_file *f;
    const struct macho_chained *c;
    const struct macho_segment *segment;
    struct exti_span bytes; /* the segment's bytes in the file */
    uint16_t page_size, format, page_count;
    struct exti_cur starts; /* at the first page start */
    int (*each)(void *user, const struct macho_fixup *x, struct exti_error *err);
    void *user;
};

static uint64_t bits(uint64_t v, unsigned from, unsigned count)
{
    return v >> from & ((1ull << count) - 1);
}

/* Both decode a slot and return the distance in bytes to the chain's next slot; 0 at the end. */
static uint64_t decode_generic(const struct chains *s, uint64_t raw, struct macho_fixup *x)
{
    x->is_bind = bits(raw, 63, 1);
    if (x->is_bind) {
        x->import = (uint32_t)bits(raw, 0, 24);
        x->addend = (int64_t)bits(raw, 24, 8);
    } else {
        x->target = bits(raw, 0, 36);
        if (s->format == DYLD_CHAINED_PTR_64)
            x->target -= s->f->text->vmaddr;
    }
    return bits(raw, 51, 12) * 4;
}

static uint64_t decode_arm64e(const struct chains *s, uint64_t raw, struct macho_fixup *x)
{
    bool authenticated = bits(raw, 63, 1);

    x->is_bind = bits(raw, 62, 1);
    if (x->is_bind) {
        x->import =
            (uint32_t)bits(raw, 0, s->format == DYLD_CHAINED_PTR_ARM64E_USERLAND24 ? 24 : 16);
        if (!authenticated) {
            x->addend = (int64_t)bits(raw, 32, 19);
            if (x->addend & 0x40000)
                x->addend -= 0x80000;
        }
    } else if (authenticated) {
        x->target = bits(raw, 0, 32);
    } else {
        x->target = bits(raw, 0, 43);
        if (s->format == DYLD_CHAINED_PTR_ARM64E)
            x->target -= s->f->text->vmaddr;
    }
    return bits(raw, 51, 11) * 8;
}

static int walk_chain(const struct chains *s, uint64_t page, uint64_t at, struct exti_error *err)
{
    uint64_t start = page * s->page_size, next;

    do {
        struct macho_fixup x = {.format = s->format};
        struct exti_span slot;
        struct exti_cur cur;
        int rc;

        if (at >= s->page_size)
            return exti__fail(err, EXTI_E_FORMAT, s->bytes.base + start,
                              "chained fixups: a chain of %s leaves its page", s->segment->name);
        rc = exti__span_sub(s->bytes, start + at, POINTER, "chained fixups: slot", &slot, err);
        if (rc)
            return rc;
        cur = exti__cur(slot, false);
        x.raw = exti__cur_u64(&cur);
        x.offset = slot.base - s->f->file.base;
        next = s->format == DYLD_CHAINED_PTR_64 || s->format == DYLD_CHAINED_PTR_64_OFFSET
                   ? decode_generic(s, x.raw, &x)
                   : decode_arm64e(s, x.raw, &x);
        if (x.is_bind && x.import >= s->c->imports_count)
            return exti__fail(err, EXTI_E_FORMAT, slot.base,
                              "chained fixups: a slot binds import %u of %u", x.import,
                              s->c->imports_count);
        rc = s->each(s->user, &x, err);
        if (rc)
            return rc;
        at += next;
    } while (next);
    return 0;
}

static int walk_pages(struct chains *s, struct exti_error *err)
{
    for (uint16_t page = 0; page < s->page_count; page++) {
        uint64_t at = s->starts.s.base + s->starts.at;
        uint16_t start = exti__cur_u16(&s->starts);
        int rc = exti__cur_end(&s->starts, "chained fixups: page starts", err);

        if (rc)
            return rc;
        if (start == DYLD_CHAINED_PTR_START_NONE)
            continue;
        /* Only 32-bit formats, whose chains have a shorter reach, have several starts in one
         * page. */
        if (start >= s->page_size)
            return exti__fail(err, EXTI_E_FORMAT, at,
                              "chained fixups: page %u of %s starts at 0x%x of 0x%x", page,
                              s->segment->name, start, s->page_size);
        rc = walk_chain(s, page, start, err);
        if (rc)
            return rc;
    }
    return 0;
}

static bool known_format(uint16_t format)
{
    return format == DYLD_CHAINED_PTR_64 || format == DYLD_CHAINED_PTR_64_OFFSET ||
           format == DYLD_CHAINED_PTR_ARM64E || format == DYLD_CHAINED_PTR_ARM64E_USERLAND ||
           format == DYLD_CHAINED_PTR_ARM64E_USERLAND24;
}

/* Walks the chains of one segment, whose dyld_chained_starts_in_segment is at offset `at` of the
 * payload. */
static int walk_segment(struct chains *s, uint64_t at, struct exti_error *err)
{
    const struct macho_segment *segment = s->segment;
    struct exti_span info;
    uint64_t vm_offset;
    uint32_t size;
    int rc;

    rc =
        exti__span_sub(s->c->s, at, STARTS_SIZE, "chained fixups: starts of a segment", &info, err);
    if (rc)
        return rc;
    s->starts = exti__cur(info, false);
    size = exti__cur_u32(&s->starts);
    rc = exti__span_sub(s->c->s, at, size, "chained fixups: starts of a segment", &info, err);
    if (rc)
        return rc;
    s->starts = exti__cur(info, false);
    exti__cur_skip(&s->starts, 4);
    s->page_size = exti__cur_u16(&s->starts);
    s->format = exti__cur_u16(&s->starts);
    vm_offset = exti__cur_u64(&s->starts);
    exti__cur_skip(&s->starts, 4);
    s->page_count = exti__cur_u16(&s->starts);
    rc = exti__cur_end(&s->starts, "chained fixups: starts of a segment", err);
    if (rc)
        return rc;
    if (!known_format(s->format))
        return exti__fail(err, EXTI_E_UNSUPPORTED, info.base + 6,
                          "chained fixups: pointer format %u of %s", s->format, segment->name);
    if (s->page_size != 0x1000 && s->page_size != 0x4000)
        return exti__fail(err, EXTI_E_FORMAT, info.base + 4,
                          "chained fixups: pages of 0x%x bytes in %s", s->page_size, segment->name);
    if (vm_offset != segment->vmaddr - s->f->text->vmaddr)
        return exti__fail(err, EXTI_E_FORMAT, info.base + 8,
                          "chained fixups: %s at 0x%" PRIx64 ", its command says 0x%" PRIx64,
                          segment->name, vm_offset, segment->vmaddr - s->f->text->vmaddr);
    rc = exti__span_sub(s->f->file, segment->fileoff, segment->filesize, segment->name, &s->bytes,
                        err);
    return rc ? rc : walk_pages(s, err);
}

int exti__macho_fixups(const struct macho_file *f, const struct macho_chained *c,
                       int (*each)(void *user, const struct macho_fixup *x, struct exti_error *err),
                       void *user, struct exti_error *err)
{
    struct exti_span starts;
    struct exti_cur cur;
    uint32_t count;
    int rc = exti__span_sub(c->s, c->starts_offset, c->s.n - c->starts_offset,
                            "chained fixups: starts", &starts, err);

    if (rc)
        return rc;
    cur = exti__cur(starts, false);
    count = exti__cur_u32(&cur);
    rc = exti__cur_end(&cur, "chained fixups: starts", err);
    if (!rc && count > f->segment_count)
        rc = exti__fail(err, EXTI_E_FORMAT, starts.base,
                        "chained fixups: starts for %u segments of %zu", count, f->segment_count);
    for (uint32_t i = 0; !rc && i < count; i++) {
        struct chains s = {.f = f, .c = c, .segment = &f->segments[i], .each = each, .user = user};
        uint32_t at = exti__cur_u32(&cur);

        rc = exti__cur_end(&cur, "chained fixups: starts", err);
        if (!rc && at)
            rc = walk_segment(&s, (uint64_t)c->starts_offset + at, err);
    }
    return rc;
}
