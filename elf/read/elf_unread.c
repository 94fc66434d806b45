#include "elf/read/elf_unread.h"

#include <elf.h>
#include <string.h>

#include "base/checked.h"

/* Smaller sections are read: leaving them out saves nothing. */
#define LEAST_BYTES ((uint64_t)16 << 10)

/* Where the header tables lie; the offsets and counts of the ELF header. */
struct header_tables {
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

static bool section_table(struct exti_span head, uint64_t size, struct exti_range *out)
{
    struct header_tables t;
    uint64_t n, end;

    /* The program headers have to be in the head. */
    if (!find_tables(head, &t) || t.phoff > head.n || t.phnum * t.phentsize > head.n - t.phoff)
        return false;
    n = t.shnum * t.shentsize;
    if (!exti__add(t.shoff, n, &end) || end > size)
        return false;
    *out = (struct exti_range){(size_t)t.shoff, (size_t)n};
    return true;
}

/* What a section or program header says of the file's bytes. */
struct named_part {
    uint64_t type, at, end;
};

/* What lies before the type, the offset and the size in a header. */
struct header_gaps {
    uint64_t type, offset, size;
};

static bool read_header(struct exti_span file, uint64_t at, uint64_t entry_size,
                        const struct header_tables *t, const struct header_gaps *gaps,
                        struct named_part *out)
{
    struct exti_span s;
    struct exti_cur c;
    uint64_t size;

    if (exti__span_sub(file, at, entry_size, "", &s, NULL))
        return false;
    c = exti__cur(s, t->big_endian);
    exti__cur_skip(&c, gaps->type);
    out->type = exti__cur_u32(&c);
    exti__cur_skip(&c, gaps->offset);
    out->at = read_word(&c, t->is64);
    exti__cur_skip(&c, gaps->size);
    size = read_word(&c, t->is64);
    return !exti__cur_end(&c, "", NULL) && exti__add(out->at, size, &out->end);
}

static bool read_section(struct exti_span file, const struct header_tables *t, size_t i,
                         struct named_part *out)
{
    const struct header_gaps gaps = {.type = 4, .offset = t->is64 ? 16 : 8};

    return read_header(file, t->shoff + i * t->shentsize, t->shentsize, t, &gaps, out);
}

static bool read_segment(struct exti_span file, const struct header_tables *t, size_t i,
                         struct named_part *out)
{
    const struct header_gaps gaps = {.offset = t->is64 ? 4 : 0, .size = t->is64 ? 16 : 8};

    return read_header(file, t->phoff + i * t->phentsize, t->phentsize, t, &gaps, out);
}

static bool overlaps(const struct named_part *p, uint64_t at, uint64_t end)
{
    return p->at < end && at < p->end;
}

static bool names_bytes(const struct named_part *section)
{
    return section->type != SHT_NULL && section->type != SHT_NOBITS;
}

/* Whether a segment is nothing that is read by itself. */
static bool holds(const struct named_part *segment, const struct named_part *section)
{
    if (segment->type == PT_LOAD)
        return segment->at <= section->at && section->end <= segment->end;
    return segment->type == PT_NULL || segment->type == PT_GNU_RELRO;
}

/* Whether no header but that of section `index` names a byte of it, except a segment that has all
 * of it.  Then the bytes between sections, which may be free for edits, are read. */
static bool is_alone(struct exti_span file, const struct header_tables *t, size_t index,
                     const struct named_part *section)
{
    struct named_part p;

    if (overlaps(section, 0, t->is64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr)) ||
        overlaps(section, t->phoff, t->phoff + t->phnum * t->phentsize) ||
        overlaps(section, t->shoff, t->shoff + t->shnum * t->shentsize))
        return false;
    for (size_t i = 0; i < t->shnum; i++)
        if (i != index && (!read_section(file, t, i, &p) ||
                           (names_bytes(&p) && overlaps(&p, section->at, section->end))))
            return false;
    for (size_t i = 0; i < t->phnum; i++)
        if (!read_segment(file, t, i, &p) ||
            (overlaps(&p, section->at, section->end) && !holds(&p, section)))
            return false;
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
static void large_sections(struct exti_span file, struct exti_unread *out)
{
    struct header_tables t;
    struct named_part p;

    out->count = 0;
    if (!find_tables(file, &t))
        return;
    for (size_t i = 0; i < t.shnum && out->count < EXTI_UNREAD_MAX; i++)
        if (read_section(file, &t, i, &p) && p.type == SHT_PROGBITS && p.end <= file.n &&
            p.end - p.at >= LEAST_BYTES && is_alone(file, &t, i, &p))
            add_part(out, &p);
}

const struct exti_unread_ops exti__elf_unread = {section_table, large_sections};
