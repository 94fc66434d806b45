/* The self-check's own reading of a file: headers, sections, and the bytes at an address. */
#include "pe/check/pe_view.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/mem.h"

uint16_t exti__pe_word16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

uint32_t exti__pe_word32(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

uint64_t exti__pe_word64(const uint8_t *p)
{
    return exti__pe_word32(p) | (uint64_t)exti__pe_word32(p + 4) << 32;
}

static int find_headers(struct pe_view *v, struct exti_span *nt, struct exti_error *err)
{
    struct exti_span dos;
    int rc = exti__span_sub(v->file, 0, DOS_HEADER_SIZE, "MS-DOS header", &dos, err);

    if (rc)
        return rc;
    if (exti__pe_word16(dos.p) != IMAGE_DOS_SIGNATURE)
        return exti__fail(err, EXTI_E_FORMAT, 0, "MS-DOS header: begins with 0x%04x, not \"MZ\"",
                          exti__pe_word16(dos.p));
    v->nt = exti__pe_word32(dos.p + DOS_E_LFANEW);
    rc = exti__span_sub(v->file, v->nt, 4 + COFF_HEADER_SIZE, "PE header", nt, err);
    if (rc)
        return rc;
    if (exti__pe_word32(nt->p) != IMAGE_NT_SIGNATURE)
        return exti__fail(err, EXTI_E_FORMAT, v->nt, "PE header: begins with 0x%08x, not \"PE\"",
                          exti__pe_word32(nt->p));
    v->machine = exti__pe_word16(nt->p + 4);
    v->sections_said = exti__pe_word16(nt->p + 6);
    v->symbols_at = exti__pe_word32(nt->p + 12);
    v->symbol_count = exti__pe_word32(nt->p + 16);
    v->optional_size = exti__pe_word16(nt->p + 20);
    v->flags = exti__pe_word16(nt->p + 22);
    v->optional = v->nt + 4 + COFF_HEADER_SIZE;
    v->table = v->optional + v->optional_size;
    return 0;
}

/* PE32+ has a wider ImageBase in place of BaseOfData, and four wider sizes behind it. */
static int read_optional(struct pe_view *v, struct exti_error *err)
{
    struct exti_span s;
    uint32_t fixed, room;
    int rc = exti__span_sub(v->file, v->optional, v->optional_size, "optional header", &s, err);

    if (rc)
        return rc;
    v->magic = s.n >= 2 ? exti__pe_word16(s.p) : 0;
    v->plus = v->magic == IMAGE_NT_OPTIONAL_HDR64_MAGIC;
    fixed = v->plus ? 112 : 96;
    if (s.n < fixed || (!v->plus && v->magic != IMAGE_NT_OPTIONAL_HDR32_MAGIC))
        return exti__fail(err, EXTI_E_FORMAT, v->optional, "optional header: %zu bytes, magic 0x%x",
                          s.n, v->magic);
    v->base = v->plus ? exti__pe_word64(s.p + 24) : exti__pe_word32(s.p + 28);
    v->section_align = exti__pe_word32(s.p + 32);
    v->file_align = exti__pe_word32(s.p + 36);
    v->image_size = exti__pe_word32(s.p + 56);
    v->header_size = exti__pe_word32(s.p + 60);
    v->checksum = exti__pe_word32(s.p + 64);
    v->dll_flags = exti__pe_word16(s.p + 70);
    v->directory_count = exti__pe_word32(s.p + fixed - 4);
    room = (uint32_t)(s.n - fixed) / 8;
    for (size_t i = 0; i < IMAGE_NUMBEROF_DIRECTORY_ENTRIES && i < v->directory_count && i < room;
         i++) {
        v->directory[i].rva = exti__pe_word32(s.p + fixed + 8 * i);
        v->directory[i].size = exti__pe_word32(s.p + fixed + 8 * i + 4);
    }
    return 0;
}

static void read_section(const struct pe_view *v, const uint8_t *p, struct pe_view_section *s)
{
    uint64_t in_file;

    memcpy(s->name, p, 8);
    s->name[8] = 0;
    s->virtual_size = exti__pe_word32(p + 8);
    s->rva = exti__pe_word32(p + 12);
    s->raw_size = exti__pe_word32(p + 16);
    s->raw_at = exti__pe_word32(p + 20);
    s->flags = exti__pe_word32(p + 36);
    s->extent = s->virtual_size ? s->virtual_size : s->raw_size;
    if (!exti__align(s->extent, v->section_align, &s->mapped))
        s->mapped = s->extent;
    in_file = s->raw_at < v->file.n ? v->file.n - s->raw_at : 0;
    if (in_file > s->raw_size)
        in_file = s->raw_size;
    s->backed = !s->raw_at ? 0 : in_file < s->mapped ? in_file : s->mapped;
}

static int read_sections(struct pe_view *v, struct exti_error *err)
{
    struct exti_span s;
    int rc = exti__span_table(v->file, v->table, v->sections_said, SECTION_HEADER_SIZE,
                              "section table", &s, err);

    if (rc)
        return rc;
    v->table_end = v->table + s.n;
    v->section_count = v->sections_said < PE_MOST_SECTIONS ? v->sections_said : PE_MOST_SECTIONS;
    v->sections = exti__calloc(v->section_count, sizeof *v->sections);
    if (!v->sections)
        return exti__fail_nomem(err);
    for (size_t i = 0; i < v->section_count; i++) {
        v->sections[i].at = v->table + i * SECTION_HEADER_SIZE;
        read_section(v, s.p + i * SECTION_HEADER_SIZE, &v->sections[i]);
    }
    return 0;
}

int exti__pe_view_open(struct exti_span file, struct pe_view *v, struct exti_error *err)
{
    struct exti_span nt;
    int rc;

    *v = (struct pe_view){.file = file};
    rc = find_headers(v, &nt, err);
    if (!rc)
        rc = read_optional(v, err);
    return rc ? rc : read_sections(v, err);
}

void exti__pe_view_close(struct pe_view *v)
{
    exti__free(v->sections);
    *v = (struct pe_view){.sections = NULL};
}

/* ---- addresses ------------------------------------------------------------------------------- */

const struct pe_view_section *exti__pe_view_section(const struct pe_view *v, uint64_t rva)
{
    for (size_t i = 0; i < v->section_count; i++)
        if (rva >= v->sections[i].rva && rva - v->sections[i].rva < v->sections[i].extent)
            return &v->sections[i];
    return NULL;
}

bool exti__pe_view_mapped(const struct pe_view *v, uint64_t rva, uint64_t n)
{
    const struct pe_view_section *s = exti__pe_view_section(v, rva);

    return s && n <= s->extent - (rva - s->rva);
}

/* What lies past VirtualSize is in memory all the same, up to the page's end. */
static const struct pe_view_section *mapped_section(const struct pe_view *v, uint64_t rva)
{
    for (size_t i = 0; i < v->section_count; i++)
        if (rva >= v->sections[i].rva && rva - v->sections[i].rva < v->sections[i].mapped)
            return &v->sections[i];
    return NULL;
}

bool exti__pe_view_from(const struct pe_view *v, uint64_t rva, struct exti_span *out)
{
    const struct pe_view_section *s = mapped_section(v, rva);
    uint64_t in;

    if (!s)
        return rva < v->header_size &&
               !exti__span_sub(v->file, rva, v->header_size - rva, "", out, NULL);
    in = rva - s->rva;
    return in < s->backed &&
           !exti__span_sub(v->file, s->raw_at + in, s->backed - in, "", out, NULL);
}

bool exti__pe_view_at(const struct pe_view *v, uint64_t rva, uint64_t n, struct exti_span *out)
{
    struct exti_span s;

    return exti__pe_view_from(v, rva, &s) && !exti__span_sub(s, 0, n, "", out, NULL);
}

const char *exti__pe_view_text(const struct pe_view *v, uint64_t rva, size_t most)
{
    struct exti_span s;

    if (!exti__pe_view_from(v, rva, &s))
        return NULL;
    if (s.n > most + 1)
        s.n = most + 1;
    return memchr(s.p, 0, s.n) ? (const char *)s.p : NULL;
}

bool exti__pe_view_signed(const struct pe_view *v, uint64_t *at, uint64_t *end)
{
    *at = v->directory[IMAGE_DIRECTORY_ENTRY_SECURITY].rva;
    *end = *at + v->directory[IMAGE_DIRECTORY_ENTRY_SECURITY].size;
    return *end > *at && *at && *end <= v->file.n;
}
