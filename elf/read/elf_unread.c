#include "elf/read/elf_unread.h"

#include <elf.h>
#include <string.h>

#include "base/checked.h"

/* Smaller parts are read: leaving them out saves nothing. */
#define LEAST_BYTES ((uint64_t)16 << 10)

/* The header tables: the ELF header's offsets and counts, and their bytes. */
struct header_tables {
    struct exti_span head, sections, dynamic;
    bool is64, big_endian;
    uint64_t phoff, shoff;
    uint64_t phnum, shnum, phentsize, shentsize;
};

static uint64_t read_word(struct exti_cur *c, bool is64)
{
    return is64 ? exti__cur_u64(c) : exti__cur_u32(c);
}

/* Reads the ELF header.  Files with extended numbering, whose header has no counts, are read
 * whole. */
static bool find_tables(struct exti_span head, struct header_tables *t)
{
    struct exti_cur c;

    if (head.n < EI_NIDENT || memcmp(head.p, ELFMAG, SELFMAG) != 0)
        return false;
    t->is64 = head.p[EI_CLASS] == ELFCLASS64;
    t->big_endian = head.p[EI_DATA] == ELFDATA2MSB;
    t->head = head;
    c = exti__cur(head, t->big_endian);
    exti__cur_skip(&c, EI_NIDENT + 2 + 2 + 4 + (t->is64 ? 8 : 4));
    t->phoff = read_word(&c, t->is64);
    t->shoff = read_word(&c, t->is64);
    exti__cur_skip(&c, 4 + 2);
    t->phentsize = exti__cur_u16(&c);
    t->phnum = exti__cur_u16(&c);
    t->shentsize = exti__cur_u16(&c);
    t->shnum = exti__cur_u16(&c);
    return !exti__cur_end(&c, "ELF header", NULL) && t->shnum && t->phnum < PN_XNUM &&
           t->phentsize == (t->is64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr)) &&
           t->shentsize == (t->is64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr));
}

/* Larger ones are no dynamic section that a linker made. */
#define DYNAMIC_MAX ((uint64_t)64 << 10)

/* What a section or program header says of the file's bytes. */
struct named_part {
    uint64_t type, at, end;
    uint64_t vaddr; /* a segment's */
};

/* What lies before the type and the offset in a header. */
struct header_gaps {
    uint64_t type, offset;
    bool addresses; /* two lie before the size */
};

static bool read_header(struct exti_span table, uint64_t at, uint64_t entry_size,
                        const struct header_tables *t, const struct header_gaps *gaps,
                        struct named_part *out)
{
    struct exti_span s;
    struct exti_cur c;
    uint64_t size;

    if (exti__span_sub(table, at, entry_size, "", &s, NULL))
        return false;
    c = exti__cur(s, t->big_endian);
    exti__cur_skip(&c, gaps->type);
    out->type = exti__cur_u32(&c);
    exti__cur_skip(&c, gaps->offset);
    out->at = read_word(&c, t->is64);
    if (gaps->addresses) {
        out->vaddr = read_word(&c, t->is64);
        exti__cur_skip(&c, t->is64 ? 8 : 4);
    }
    size = read_word(&c, t->is64);
    return !exti__cur_end(&c, "", NULL) && exti__add(out->at, size, &out->end);
}

static bool read_section(const struct header_tables *t, size_t i, struct named_part *out)
{
    const struct header_gaps gaps = {.type = 4, .offset = t->is64 ? 16 : 8};

    return read_header(t->sections, i * t->shentsize, t->shentsize, t, &gaps, out);
}

static bool read_segment(const struct header_tables *t, size_t i, struct named_part *out)
{
    const struct header_gaps gaps = {.offset = t->is64 ? 4 : 0, .addresses = true};

    return read_header(t->head, t->phoff + i * t->phentsize, t->phentsize, t, &gaps, out);
}

static bool find_dynamic(const struct header_tables *t, struct named_part *out)
{
    for (size_t i = 0; i < t->phnum; i++)
        if (read_segment(t, i, out) && out->type == PT_DYNAMIC)
            return out->end - out->at <= DYNAMIC_MAX;
    return false;
}

/* The section headers, and the dynamic section if it is where it should be. */
static size_t find_all_tables(struct exti_span head, uint64_t size,
                              struct exti_range out[EXTI_UNREAD_TABLES])
{
    struct named_part dynamic;
    struct header_tables t;
    uint64_t n, end;

    /* The program headers have to be in the head. */
    if (!find_tables(head, &t) || t.phoff > head.n || t.phnum * t.phentsize > head.n - t.phoff)
        return 0;
    n = t.shnum * t.shentsize;
    if (!exti__add(t.shoff, n, &end) || end > size)
        return 0;
    out[0] = (struct exti_range){(size_t)t.shoff, (size_t)n};
    if (!find_dynamic(&t, &dynamic) || dynamic.end > size)
        return 1;
    out[1] = (struct exti_range){(size_t)dynamic.at, (size_t)(dynamic.end - dynamic.at)};
    return 2;
}

/* The value of the last entry with that tag, as for exti__elf_tag; 0 if there is none. */
static uint64_t find_value(const struct header_tables *t, uint64_t tag)
{
    struct exti_cur c = exti__cur(t->dynamic, t->big_endian);
    uint64_t found = 0, is, value;

    while ((is = read_word(&c, t->is64)) != DT_NULL) {
        value = read_word(&c, t->is64);
        if (!c.failed && is == tag)
            found = value;
    }
    return found;
}

/* Gives where the file has the first `n` bytes of the segment's part from the address on. */
static bool find_address(const struct header_tables *t, uint64_t vaddr, uint64_t n,
                         struct named_part *out)
{
    struct named_part p;

    for (size_t i = 0; i < t->phnum; i++) {
        if (!read_segment(t, i, &p) || p.type != PT_LOAD || vaddr < p.vaddr ||
            vaddr - p.vaddr >= p.end - p.at)
            continue;
        out->at = p.at + (vaddr - p.vaddr);
        return exti__add(out->at, n, &out->end) && out->end <= p.end;
    }
    return false;
}

/* Finds the relative relocations that one table starts with, if a tag counts them: see
 * exti__elf_each_reloc, which passes over these. */
static bool find_relative(const struct header_tables *t, bool rela, struct named_part *out)
{
    const uint64_t entry = (t->is64 ? 8 : 4) * (rela ? 3u : 2u);
    uint64_t n;

    if (!exti__mul(find_value(t, rela ? DT_RELACOUNT : DT_RELCOUNT), entry, &n) ||
        n < LEAST_BYTES || n > find_value(t, rela ? DT_RELASZ : DT_RELSZ))
        return false;
    return find_address(t, find_value(t, rela ? DT_RELA : DT_REL), n, out);
}

static bool overlaps(const struct named_part *p, uint64_t at, uint64_t end)
{
    return p->at < end && at < p->end;
}

static bool names_bytes(const struct named_part *section)
{
    return section->type != SHT_NULL && section->type != SHT_NOBITS;
}

/* Bytes that may be left out, if nothing else has a part of them. */
struct candidate {
    struct named_part part;
    size_t section; /* of which they are all, or RELATIVE */
    bool shared;
};
#define RELATIVE SIZE_MAX

struct candidates {
    struct candidate item[EXTI_UNREAD_MAX];
    size_t count;
};

/* A lean copy may be without one part more: its plan's cut. */
static void add_candidate(struct candidates *c, const struct named_part *p, size_t section,
                          uint64_t size)
{
    if (c->count < EXTI_UNREAD_MAX - 1 && p->end <= size && p->end - p->at >= LEAST_BYTES)
        c->item[c->count++] = (struct candidate){.part = *p, .section = section};
}

static bool has_all(const struct named_part *p, const struct candidate *c)
{
    return p->at <= c->part.at && c->part.end <= p->end;
}

/* Whether a segment has a part of the bytes, and is not just the memory that they are loaded to.
 * Nobody but the unwinder looks at PT_GNU_EH_FRAME. */
static bool segment_shares(const struct named_part *segment, const struct candidate *c)
{
    if (!overlaps(segment, c->part.at, c->part.end))
        return false;
    if (segment->type == PT_LOAD)
        return !has_all(segment, c);
    return segment->type != PT_NULL && segment->type != PT_GNU_RELRO &&
           segment->type != PT_GNU_EH_FRAME;
}

static bool section_shares(const struct named_part *section, size_t i, const struct candidate *c)
{
    if (i == c->section || !names_bytes(section) || !overlaps(section, c->part.at, c->part.end))
        return false;
    return c->section != RELATIVE || (section->type != SHT_RELA && section->type != SHT_REL) ||
           !has_all(section, c);
}

/* Marks the candidates of which another header names a byte.  So the bytes between sections, which
 * may be free for edits, are read.  False if a header makes no sense. */
static bool mark_shared(const struct header_tables *t, struct candidates *c)
{
    struct named_part p;

    for (size_t k = 0; k < c->count; k++) {
        const struct named_part *own = &c->item[k].part;

        c->item[k].shared = overlaps(own, 0, t->is64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr)) ||
                            overlaps(own, t->phoff, t->phoff + t->phnum * t->phentsize) ||
                            overlaps(own, t->shoff, t->shoff + t->shnum * t->shentsize);
    }
    for (size_t i = 0; i < t->shnum; i++) {
        if (!read_section(t, i, &p))
            return false;
        for (size_t k = 0; k < c->count; k++)
            c->item[k].shared = c->item[k].shared || section_shares(&p, i, &c->item[k]);
    }
    for (size_t i = 0; i < t->phnum; i++) {
        if (!read_segment(t, i, &p))
            return false;
        for (size_t k = 0; k < c->count; k++)
            c->item[k].shared = c->item[k].shared || segment_shares(&p, &c->item[k]);
    }
    return true;
}

static void add_part(struct exti_unread *u, const struct named_part *p)
{
    size_t i = u->count++;

    for (; i && u->part[i - 1].at > p->at; i--)
        u->part[i] = u->part[i - 1];
    u->part[i] = (struct exti_range){(size_t)p->at, (size_t)(p->end - p->at)};
}

/* PROGBITS is what the gABI calls contents whose format and meaning are the program's alone. */
static void find_parts(struct exti_span head, const struct exti_span table[EXTI_UNREAD_TABLES],
                       uint64_t size, struct exti_unread *out)
{
    struct candidates c = {.count = 0};
    struct header_tables t;
    struct named_part p;

    out->count = 0;
    if (!find_tables(head, &t))
        return;
    t.sections = table[0];
    t.dynamic = table[1];
    if (find_relative(&t, true, &p) || find_relative(&t, false, &p))
        add_candidate(&c, &p, RELATIVE, size);
    for (size_t i = 0; i < t.shnum; i++)
        if (read_section(&t, i, &p) && p.type == SHT_PROGBITS)
            add_candidate(&c, &p, i, size);
    if (!mark_shared(&t, &c))
        return;
    for (size_t k = 0; k < c.count; k++)
        if (!c.item[k].shared)
            add_part(out, &c.item[k].part);
}

const struct exti_unread_ops exti__elf_unread = {find_all_tables, find_parts};

void exti__elf_find_unread(struct exti_span file, struct exti_unread *out)
{
    struct exti_range at[EXTI_UNREAD_TABLES];
    struct exti_span head, table[EXTI_UNREAD_TABLES] = {{0}};
    size_t count;

    out->count = 0;
    if (exti__span_sub(file, 0, file.n < EXTI_UNREAD_HEAD ? file.n : EXTI_UNREAD_HEAD, "", &head,
                       NULL))
        return;
    count = find_all_tables(head, file.n, at);
    for (size_t i = 0; i < count; i++)
        if (exti__span_sub(file, at[i].at, at[i].n, "", &table[i], NULL))
            return;
    if (count)
        find_parts(head, table, file.n, out);
}
