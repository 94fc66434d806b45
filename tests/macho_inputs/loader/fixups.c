/* The three ways to describe bindings: chained fixups, and LC_DYLD_INFO's eager, lazy and weak
 * streams. */
#include "tests/macho_inputs/loader/load.h"

#include <stdio.h>
#include <string.h>

/* ---- chained fixups -------------------------------------------------------------------------- */

struct chained {
    uint64_t at, end, starts, imports, symbols;
    uint32_t count, format;
};

static struct chained chained_of(const struct macho *m)
{
    struct chained c = {.at = m->chained.off, .end = (uint64_t)m->chained.off + m->chained.size};

    if (get32(m, c.at) != 0 || get32(m, c.at + 24) != 0)
        die("%s: unknown version or string format of the chained fixups", m->path);
    c.starts = c.at + get32(m, c.at + 4);
    c.imports = c.at + get32(m, c.at + 8);
    c.symbols = c.at + get32(m, c.at + 12);
    c.count = get32(m, c.at + 16);
    c.format = get32(m, c.at + 20);
    if (c.format < 1 || c.format > 3)
        die("%s: chained imports of format %u", m->path, c.format);
    return c;
}

static struct import chained_import(const struct macho *m, const struct chained *c, uint32_t i)
{
    static const uint32_t sizes[] = {0, 4, 8, 16};
    uint64_t at = c->imports + (uint64_t)i * sizes[c->format];
    struct import x = {0};
    uint64_t name;

    if (i >= c->count || at + sizes[c->format] > c->symbols)
        die("%s: chained import %u is not in the table", m->path, i);
    if (c->format == 3) {
        uint64_t v = get64(m, at);

        x.ordinal = (v & 0xffff) > 0xfff0 ? (int16_t)(v & 0xffff) : (int)(v & 0xffff);
        x.weak = v >> 16 & 1;
        name = v >> 32;
        x.addend = (int64_t)get64(m, at + 8);
    } else {
        uint32_t v = get32(m, at);

        x.ordinal = (v & 0xff) > 0xf0 ? (int8_t)(v & 0xff) : (int)(v & 0xff);
        x.weak = v >> 8 & 1;
        name = v >> 9;
        if (c->format == 2)
            x.addend = (int32_t)get32(m, at + 4);
    }
    x.symbol = string_at(m, c->symbols + name, c->end);
    return x;
}

struct chain {
    const struct macho *m;
    const struct chained *c;
    const struct segment *segment;
    uint64_t page_size;
    uint16_t format;
    void (*each)(void *user, const struct fixup *f);
    void *user;
};

static void walk_chain(const struct chain *w, uint64_t offset)
{
    const struct macho *m = w->m;
    uint64_t page = offset / w->page_size;

    for (;;) {
        struct fixup f = {.at = w->segment->vmaddr + offset - m->start};
        uint64_t v = get64(m, w->segment->fileoff + offset);
        uint64_t next = (v >> 51 & 0xfff) * 4;

        if (v >> 63) {
            f.is_bind = true;
            f.import = chained_import(m, w->c, (uint32_t)(v & 0xffffff));
            f.addend = (int64_t)(v >> 24 & 0xff);
        } else {
            f.target = (v & 0xfffffffffull) - (w->format == 2 ? m->start : 0);
            f.target |= (v >> 36 & 0xff) << 56;
        }
        w->each(w->user, &f);
        if (!next)
            return;
        offset += next;
        if (offset / w->page_size != page)
            die("%s: a chain leaves its page at 0x%llx", m->path, (unsigned long long)offset);
    }
}

static void each_chained(const struct macho *m, void (*each)(void *user, const struct fixup *f),
                         void *user)
{
    struct chained c = chained_of(m);
    uint32_t segments = get32(m, c.starts);

    if (segments > m->segment_count)
        die("%s: chained fixups for %u segments", m->path, segments);
    for (uint32_t i = 0; i < segments; i++) {
        uint32_t off = get32(m, c.starts + 4 + 4 * (uint64_t)i);
        uint64_t at = c.starts + off;
        struct chain w = {m, &c, &m->segments[i], 0, 0, each, user};

        if (!off)
            continue;
        w.page_size = get16(m, at + 4);
        w.format = get16(m, at + 6);
        if (w.page_size != 0x1000 && w.page_size != 0x4000)
            die("%s: chained fixups with pages of 0x%llx", m->path,
                (unsigned long long)w.page_size);
        if (w.format != 2 && w.format != 6)
            die("%s: chained pointers of format %u", m->path, w.format);
        /* dyld before 12.3 finds the segment by this field, later versions by the index. */
        if (get64(m, at + 8) != w.segment->vmaddr - m->start)
            die("%s: chained fixups place %s at 0x%llx", m->path, w.segment->name,
                (unsigned long long)get64(m, at + 8));
        for (uint64_t page = 0; page < get16(m, at + 20); page++) {
            uint16_t first = get16(m, at + 22 + 2 * page);

            if (first == 0xffff)
                continue;
            if (first >= w.page_size)
                die("%s: a chain starts outside of its page", m->path);
            walk_chain(&w, page * w.page_size + first);
        }
    }
}

/* ---- LC_DYLD_INFO ---------------------------------------------------------------------------- */

struct stream {
    struct reader r;
    void (*each)(void *user, const struct fixup *f);
    void *user;
    bool weak, lazy;
    const struct segment *segment;
    uint64_t offset;
    /* The current and the effective target: dyld opens a new target only when a symbol or an
     * addend is set (MachOLayout.cpp, targetOrAddendChanged), so an ordinal alone changes
     * nothing. */
    struct import said, counts;
    bool changed, has_ordinal;
};

static void place(struct stream *s, uint8_t segment)
{
    const struct macho *m = s->r.m;

    if (segment >= m->segment_count)
        die("%s: opcodes name segment %u", m->path, segment);
    s->segment = &m->segments[segment];
    s->offset = read_uleb(&s->r);
}

static uint64_t slot(const struct stream *s)
{
    if (!s->segment || s->offset > s->segment->vmsize || s->segment->vmsize - s->offset < 8)
        die("%s: opcodes name a place outside of its segment", s->r.m->path);
    return s->segment->vmaddr + s->offset;
}

static void bind_here(struct stream *s, uint64_t skip)
{
    struct fixup f = {.is_bind = true, .at = slot(s) - s->r.m->start};

    if (s->changed)
        s->counts = s->said;
    s->changed = false;
    if (!s->counts.symbol || (!s->weak && !s->has_ordinal))
        die("%s: opcodes bind before symbol and ordinal are set", s->r.m->path);
    if (!(s->segment->initprot & 2) || s->segment->initprot & 4)
        die("%s: opcodes bind in %s, which cannot be written", s->r.m->path, s->segment->name);
    f.import = s->counts;
    f.import.weak_stream = s->weak;
    if (s->weak)
        f.import.ordinal = WEAK;
    s->each(s->user, &f);
    s->offset += 8 + skip;
}

static void set_ordinal(struct stream *s, int ordinal)
{
    if (s->weak)
        die("%s: the weak stream sets an ordinal", s->r.m->path);
    s->said.ordinal = ordinal;
    s->has_ordinal = true;
}

/* False at the stream's end. */
static bool bind_opcode(struct stream *s)
{
    uint8_t b = read8(&s->r), imm = b & 0xf;
    uint64_t n, skip;

    switch (b & 0xf0) {
    case 0x00:
        return s->lazy; /* ends each lazy entry */
    case 0x10:
        set_ordinal(s, imm);
        break;
    case 0x20:
        set_ordinal(s, (int)read_uleb(&s->r));
        break;
    case 0x30:
        set_ordinal(s, imm ? (int8_t)(0xf0 | imm) : 0);
        break;
    case 0x40:
        s->said.symbol = read_string(&s->r);
        s->said.weak = imm & 1;
        s->changed = true;
        break;
    case 0x50:
        if (imm != 1)
            die("%s: a bind of type %u", s->r.m->path, imm);
        break;
    case 0x60:
        s->said.addend = read_sleb(&s->r);
        s->changed = true;
        break;
    case 0x70:
        place(s, imm);
        break;
    case 0x80:
        s->offset += read_uleb(&s->r);
        break;
    case 0x90:
        bind_here(s, 0);
        break;
    case 0xa0:
        bind_here(s, read_uleb(&s->r));
        break;
    case 0xb0:
        bind_here(s, imm * (uint64_t)8);
        break;
    case 0xc0:
        n = read_uleb(&s->r);
        skip = read_uleb(&s->r);
        while (n--)
            bind_here(s, skip);
        break;
    default:
        die("%s: bind opcode 0x%02x", s->r.m->path, b);
    }
    return true;
}

static void each_bind(const struct macho *m, struct blob b, bool weak, bool lazy,
                      void (*each)(void *user, const struct fixup *f), void *user)
{
    struct stream s = {
        .r = read_blob(m, b), .each = each, .user = user, .weak = weak, .lazy = lazy};

    while (s.r.at < s.r.end && bind_opcode(&s))
        continue;
}

static void rebase_here(struct stream *s, uint64_t skip)
{
    const struct macho *m = s->r.m;
    uint64_t at = slot(s);
    struct fixup f = {.at = at - m->start, .target = get64(m, offset_of(m, at)) - m->start};

    s->each(s->user, &f);
    s->offset += 8 + skip;
}

static bool rebase_opcode(struct stream *s)
{
    uint8_t b = read8(&s->r), imm = b & 0xf;
    uint64_t n = imm, skip = 0;

    switch (b & 0xf0) {
    case 0x00:
        return false;
    case 0x10:
        if (imm != 1)
            die("%s: a rebase of type %u", s->r.m->path, imm);
        return true;
    case 0x20:
        place(s, imm);
        return true;
    case 0x30:
        s->offset += read_uleb(&s->r);
        return true;
    case 0x40:
        s->offset += imm * (uint64_t)8;
        return true;
    case 0x50:
        break;
    case 0x60:
        n = read_uleb(&s->r);
        break;
    case 0x70:
        rebase_here(s, read_uleb(&s->r));
        return true;
    case 0x80:
        n = read_uleb(&s->r);
        skip = read_uleb(&s->r);
        break;
    default:
        die("%s: rebase opcode 0x%02x", s->r.m->path, b);
    }
    while (n--)
        rebase_here(s, skip);
    return true;
}

static void each_rebase(const struct macho *m, void (*each)(void *user, const struct fixup *f),
                        void *user)
{
    struct stream s = {.r = read_blob(m, m->rebase), .each = each, .user = user};

    while (s.r.at < s.r.end && rebase_opcode(&s))
        continue;
}

/* ---- either ---------------------------------------------------------------------------------- */

void each_fixup(const struct macho *m, void (*each)(void *user, const struct fixup *f), void *user)
{
    if (m->has_chained) {
        each_chained(m, each, user);
    } else if (m->has_dyld_info) {
        each_rebase(m, each, user);
        each_bind(m, m->bind, false, false, each, user);
        each_bind(m, m->lazy_bind, false, true, each, user);
        each_bind(m, m->weak_bind, true, false, each, user);
    }
}

struct imports {
    void (*each)(void *user, const struct import *i);
    void *user;
};

static void import_of_fixup(void *user, const struct fixup *f)
{
    struct imports *x = user;

    if (f->is_bind)
        x->each(x->user, &f->import);
}

void each_import(const struct macho *m, void (*each)(void *user, const struct import *i),
                 void *user)
{
    struct imports x = {each, user};

    if (m->has_chained) {
        struct chained c = chained_of(m);

        for (uint32_t i = 0; i < c.count; i++) {
            struct import import = chained_import(m, &c, i);

            each(user, &import);
        }
    } else if (m->has_dyld_info) {
        each_bind(m, m->bind, false, false, import_of_fixup, &x);
        each_bind(m, m->lazy_bind, false, true, import_of_fixup, &x);
        each_bind(m, m->weak_bind, true, false, import_of_fixup, &x);
    }
}
