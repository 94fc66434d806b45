/* LC_DYLD_CHAINED_FIXUPS, decoded a second time, and dyld's rules for it
 * (mach_o/ChainedFixups.cpp: valid, validLinkedit). */
#include "macho/check/macho_check_chain.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "macho/check/macho_check_report.h"
#include "macho/read/macho_word.h"

#define HEADER_SIZE 28u
#define STARTS_SIZE 22u /* size of a dyld_chained_starts_in_segment without page starts */

struct reading {
    struct macho_check *c;
    const struct macho_file *f;
    struct macho_chain_table *t;
    bool bad;
    int (*rebased)(void *user, uint64_t at, struct exti_error *err); /* may be NULL */
    void *user;
};

static void report_chain_fault(struct reading *r, uint64_t at, const char *what)
{
    r->bad = true;
    exti__macho_broken(r->c, r->f, r->t->s.base - r->f->file.base + at, what,
                       "dyld ChainedFixups::valid: chained fixups + 0x%" PRIx64 ": %s", at, what);
}

static bool payload_has(const struct macho_chain_table *t, uint64_t at, uint64_t n)
{
    return at <= t->s.n && n <= t->s.n - at;
}

static uint32_t payload_u32(const struct macho_chain_table *t, uint64_t at)
{
    return exti__macho_u32(t->s.p + at);
}

/* ---- imports --------------------------------------------------------------------------------- */

static unsigned import_size(uint32_t format)
{
    return format == DYLD_CHAINED_IMPORT_ADDEND64 ? 16
           : format == DYLD_CHAINED_IMPORT_ADDEND ? 8
                                                  : 4;
}

static uint32_t decode_import(const struct macho_chain_table *t, uint64_t at,
                              struct macho_import *out)
{
    const uint8_t *p = t->s.p + at;
    const uint32_t raw = exti__macho_u32(p), library = raw & 0xff;

    if (t->imports_format == DYLD_CHAINED_IMPORT_ADDEND64) {
        const uint64_t wide = exti__macho_u64(p);
        const uint32_t ordinal = (uint32_t)wide & 0xffff;

        out->ordinal = ordinal > 0xfff0 ? (int32_t)ordinal - 0x10000 : (int32_t)ordinal;
        out->weak = wide >> 16 & 1;
        out->addend = (int64_t)exti__macho_u64(p + 8);
        return (uint32_t)(wide >> 32);
    }
    out->ordinal = library > 0xf0 ? (int32_t)library - 0x100 : (int32_t)library;
    out->weak = raw >> 8 & 1;
    if (t->imports_format == DYLD_CHAINED_IMPORT_ADDEND)
        out->addend = (int32_t)exti__macho_u32(p + 4);
    return raw >> 9;
}

static void check_import_entry(struct reading *r, uint32_t i)
{
    struct macho_chain_table *t = r->t;
    struct macho_import *out = &t->imports.v[i];
    const uint64_t at = t->imports_offset + (uint64_t)i * import_size(t->imports_format);
    const uint64_t name = (uint64_t)t->symbols_offset + decode_import(t, at, out);

    out->at = t->s.base - r->f->file.base + at;
    out->name = "";
    if (name >= t->s.n || !memchr(t->s.p + name, 0, t->s.n - (size_t)name))
        report_chain_fault(r, at, "an import's name is outside the symbol names");
    else
        out->name = (const char *)t->s.p + name;
    if (out->ordinal < BIND_SPECIAL_DYLIB_WEAK_LOOKUP ||
        (out->ordinal > 0 && (size_t)out->ordinal > exti__macho_most_ordinal(r->f)))
        report_chain_fault(r, at, "an import's library ordinal is out of range");
}

static int read_imports(struct reading *r, uint32_t count, struct exti_error *err)
{
    struct macho_chain_table *t = r->t;

    if (t->imports_format < DYLD_CHAINED_IMPORT ||
        t->imports_format > DYLD_CHAINED_IMPORT_ADDEND64) {
        report_chain_fault(r, 20, "unknown imports_format");
        return 0;
    }
    if (count >= 1u << 24)
        report_chain_fault(r, 16, "imports_count is 2^24 or more");
    if (!payload_has(t, t->imports_offset, (uint64_t)count * import_size(t->imports_format)) ||
        t->imports_offset + (uint64_t)count * import_size(t->imports_format) > t->symbols_offset) {
        report_chain_fault(r, 8, "the imports overlap the symbol names");
        return 0;
    }
    t->imports.v = exti__calloc(count, sizeof *t->imports.v);
    if (!t->imports.v)
        return exti__fail_nomem(err);
    t->imports.n = count;
    for (uint32_t i = 0; i < count && !r->c->judge.stop; i++)
        check_import_entry(r, i);
    return 0;
}

/* ---- starts ---------------------------------------------------------------------------------- */

static bool known_format(uint16_t format)
{
    return format == DYLD_CHAINED_PTR_64 || format == DYLD_CHAINED_PTR_64_OFFSET ||
           format == DYLD_CHAINED_PTR_ARM64E || format == DYLD_CHAINED_PTR_ARM64E_USERLAND ||
           format == DYLD_CHAINED_PTR_ARM64E_USERLAND24;
}

static void check_pages(struct reading *r, const struct macho_starts *s)
{
    for (uint32_t i = 0; i < s->page_count; i++) {
        const uint16_t start = exti__macho_u16(s->page_start.p + i * 2);

        if (start != DYLD_CHAINED_PTR_START_NONE && start & DYLD_CHAINED_PTR_START_MULTI)
            report_chain_fault(r, s->at, "a page of a 64-bit image has several chains");
        else if (start != DYLD_CHAINED_PTR_START_NONE && start > s->page_size)
            report_chain_fault(r, s->at, "a chain starts after its page");
    }
}

static void read_starts(struct reading *r, uint32_t segment, uint64_t at)
{
    struct macho_chain_table *t = r->t;
    struct macho_starts *s = &t->starts[t->starts_count];

    if (!payload_has(t, at, STARTS_SIZE)) {
        report_chain_fault(r, at, "a segment's starts are outside the payload");
        return;
    }
    *s = (struct macho_starts){.at = at,
                               .segment = segment,
                               .size = payload_u32(t, at),
                               .page_size = exti__macho_u16(t->s.p + at + 4),
                               .format = exti__macho_u16(t->s.p + at + 6),
                               .segment_offset = exti__macho_u64(t->s.p + at + 8),
                               .max_valid_pointer = payload_u32(t, at + 16),
                               .page_count = exti__macho_u16(t->s.p + at + 20)};
    if (!payload_has(t, at + STARTS_SIZE, (uint64_t)s->page_count * 2) ||
        STARTS_SIZE + (uint64_t)s->page_count * 2 > s->size ||
        (t->imports_offset > at && at + s->size > t->imports_offset)) {
        report_chain_fault(
            r, at, "a segment's starts are too small for its pages, or overlap the imports");
        return;
    }
    s->page_start = t->s;
    s->page_start.p += at + STARTS_SIZE;
    s->page_start.n = (size_t)s->page_count * 2;
    t->starts_count++;
    if (s->page_size != 0x1000 && s->page_size != 0x4000)
        report_chain_fault(r, at, "page_size is neither 0x1000 nor 0x4000");
    if (!known_format(s->format))
        report_chain_fault(r, at, "the pointer_format is not for 64-bit libraries");
    if (s->format != t->starts[0].format)
        report_chain_fault(r, at, "segments have different pointer_formats");
    if (s->max_valid_pointer != t->starts[0].max_valid_pointer)
        report_chain_fault(r, at, "segments have different max_valid_pointers");
    if (s->segment_offset != r->f->segments[segment].vmaddr - r->f->text->vmaddr)
        report_chain_fault(r, at, "segment_offset is not the segment's offset in the image");
    check_pages(r, s);
}

static int read_segments(struct reading *r, struct exti_error *err)
{
    struct macho_chain_table *t = r->t;
    const uint64_t at = t->starts_offset;
    uint32_t count;

    if (!payload_has(t, at, 4)) {
        report_chain_fault(r, 4, "starts_offset is outside the payload");
        return 0;
    }
    count = payload_u32(t, at);
    if (count > r->f->segment_count || !payload_has(t, at + 4, (uint64_t)count * 4)) {
        report_chain_fault(r, at, "more segments than the file has");
        return 0;
    }
    /* Only a trailing __CTF segment may lack an entry. */
    for (size_t i = count; i < r->f->segment_count; i++)
        if (strcmp(r->f->segments[i].name, "__CTF") != 0)
            report_chain_fault(r, at, "fewer segments than the file has");
    t->starts = exti__calloc(count, sizeof *t->starts);
    if (!t->starts)
        return exti__fail_nomem(err);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t offset = payload_u32(t, at + 4 + (uint64_t)i * 4);

        if (offset)
            read_starts(r, i, at + offset);
    }
    return 0;
}

int exti__macho_chain_open(struct macho_check *c, const struct macho_file *f,
                           struct macho_chain_table *t, bool *ok, struct exti_error *err)
{
    struct reading r = {.c = c, .f = f, .t = t};
    uint32_t count;
    int rc;

    *t = (struct macho_chain_table){.s = f->pieces[MACHO_CHAINED_FIXUPS].s};
    *ok = false;
    if (t->s.n < HEADER_SIZE) {
        report_chain_fault(&r, 0, "shorter than its header");
        return 0;
    }
    t->starts_offset = payload_u32(t, 4);
    t->imports_offset = payload_u32(t, 8);
    t->symbols_offset = payload_u32(t, 12);
    count = payload_u32(t, 16);
    t->imports_format = payload_u32(t, 20);
    if (payload_u32(t, 0))
        report_chain_fault(&r, 0, "version is not 0");
    if (payload_u32(t, 24))
        report_chain_fault(&r, 24, "symbols_format is not 0");
    rc = read_segments(&r, err);
    if (!rc)
        rc = read_imports(&r, count, err);
    if (rc)
        exti__macho_chain_close(t);
    *ok = !rc && !r.bad;
    return rc;
}

void exti__macho_chain_close(struct macho_chain_table *t)
{
    exti__free(t->imports.v);
    exti__free(t->starts);
    *t = (struct macho_chain_table){.imports_format = 0};
}

/* ---- the chains ------------------------------------------------------------------------------ */

static bool is_arm64e(uint16_t format)
{
    return format != DYLD_CHAINED_PTR_64 && format != DYLD_CHAINED_PTR_64_OFFSET;
}

/* Distance to the next slot; 0 at the end. */
static uint64_t next_of(uint16_t format, uint64_t raw)
{
    return is_arm64e(format) ? (raw >> 51 & 0x7ff) * 8 : (raw >> 51 & 0xfff) * 4;
}

static uint32_t import_of(uint16_t format, uint64_t raw)
{
    return (uint32_t)(is_arm64e(format) && format != DYLD_CHAINED_PTR_ARM64E_USERLAND24
                          ? raw & 0xffff
                          : raw & 0xffffff);
}

static bool is_bind(uint16_t format, uint64_t raw)
{
    return is_arm64e(format) ? raw >> 62 & 1 : raw >> 63;
}

static int walk_page(struct reading *r, const struct macho_starts *s, uint64_t at, uint64_t end,
                     struct exti_error *err)
{
    const struct exti_span file = r->f->file;

    for (;;) {
        uint64_t raw, next;
        int rc = 0;

        if (at > file.n || file.n - at < 8 || at > end - 8) {
            report_chain_fault(r, s->at, "a chain leaves its page");
            return 0;
        }
        raw = exti__macho_u64(file.p + at);
        if (is_bind(s->format, raw) && import_of(s->format, raw) >= r->t->imports.n)
            report_chain_fault(r, s->at, "a slot's import does not exist");
        if (r->rebased && !is_bind(s->format, raw))
            rc = r->rebased(r->user, at, err);
        next = next_of(s->format, raw);
        if (rc || !next || r->bad)
            return rc;
        at += next;
    }
}

int exti__macho_chain_walk(struct macho_check *c, const struct macho_file *f,
                           const struct macho_chain_table *t,
                           int (*rebased)(void *user, uint64_t at, struct exti_error *err),
                           void *user, struct exti_error *err)
{
    struct macho_chain_table table = *t;
    struct reading r = {.c = c, .f = f, .t = &table, .rebased = rebased, .user = user};
    int rc = 0;

    for (size_t i = 0; !rc && i < t->starts_count; i++) {
        const struct macho_starts *s = &t->starts[i];
        const struct macho_segment *segment = &f->segments[s->segment];

        for (uint32_t page = 0; !rc && !r.bad && page < s->page_count; page++) {
            const uint16_t start = exti__macho_u16(s->page_start.p + page * 2);
            const uint64_t from = segment->fileoff + (uint64_t)page * s->page_size;
            /* A page's last slot may extend into the next page. */
            uint64_t end = from + s->page_size + 4;

            if (end > segment->fileoff + segment->filesize)
                end = segment->fileoff + segment->filesize;
            if (start != DYLD_CHAINED_PTR_START_NONE && end >= 8)
                rc = walk_page(&r, s, from + start, end, err);
        }
    }
    return rc;
}

int exti__macho_rule_chains(struct macho_check *c, const struct macho_file *f,
                            struct exti_error *err)
{
    struct macho_chain_table t;
    bool ok;
    int rc;

    if (!f->pieces[MACHO_CHAINED_FIXUPS].present ||
        (exti__macho_settled(c, f, MACHO_CHAINED_FIXUPS) &&
         c->after.dylib_count >= c->before.dylib_count))
        return 0;
    rc = exti__macho_chain_open(c, f, &t, &ok, err);
    if (rc)
        return rc;
    /* Slots outside the plan's patches are the original's. */
    if (ok && (!c->plan || c->shift || c->judge.strict))
        rc = exti__macho_chain_walk(c, f, &t, NULL, NULL, err);
    exti__macho_chain_close(&t);
    return rc;
}
