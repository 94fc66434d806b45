/* Reads the section table. */
#include "pe/read/pe_section.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/mem.h"

static int section_fail(const struct pe_section *s, uint32_t field, struct exti_error *err,
                        const char *what, uint32_t is, const char *not_what, uint64_t right)
{
    return exti__fail(err, EXTI_E_FORMAT, s->at + field,
                      "section %s: %s is 0x%" PRIx32 ", not %s 0x%" PRIx64, s->name, what, is,
                      not_what, right);
}

enum { VIRTUAL_SIZE = 8, VIRTUAL_ADDRESS = 12, SIZE_OF_RAW_DATA = 16, POINTER_TO_RAW_DATA = 20 };

static int read_section(struct pe_section *s, struct exti_span header, struct exti_error *err)
{
    struct exti_cur c = exti__cur(header, false);

    s->at = header.base;
    memcpy(s->name, header.p, 8);
    exti__cur_skip(&c, 8);
    s->virtual_size = exti__cur_u32(&c);
    s->rva = exti__cur_u32(&c);
    s->raw_size = exti__cur_u32(&c);
    s->raw_offset = exti__cur_u32(&c);
    exti__cur_skip(&c, 12);
    s->characteristics = exti__cur_u32(&c);
    if (!s->virtual_size)
        s->virtual_size = s->raw_size;
    if (!s->virtual_size)
        return exti__fail(
            err, EXTI_E_FORMAT, s->at + VIRTUAL_SIZE,
            "section %s: VirtualSize and SizeOfRawData are 0, which Windows does not load",
            s->name);
    /* A section without PointerToRawData has no bytes in the file, whatever its SizeOfRawData. */
    if (!s->raw_offset)
        s->raw_size = 0;
    return exti__cur_end(&c, "section header", err);
}

static int check_place_in_memory(const struct pe_file *f, const struct pe_section *s, uint64_t *end,
                                 struct exti_error *err)
{
    if (s == f->sections) {
        if (s->rva < f->size_of_headers)
            return section_fail(s, VIRTUAL_ADDRESS, err, "VirtualAddress", s->rva,
                                "behind SizeOfHeaders", f->size_of_headers);
        if (s->rva % f->section_alignment)
            return section_fail(s, VIRTUAL_ADDRESS, err, "VirtualAddress", s->rva, "a multiple of",
                                f->section_alignment);
    } else if (s->rva != *end) {
        return section_fail(s, VIRTUAL_ADDRESS, err, "VirtualAddress", s->rva,
                            "where the section before it ends,", *end);
    }
    exti__align((uint64_t)s->rva + s->virtual_size, f->section_alignment, end);
    if (*end > UINT32_MAX)
        return section_fail(s, VIRTUAL_SIZE, err, "VirtualSize", s->virtual_size,
                            "such that it ends below", UINT32_MAX);
    return 0;
}

static int check_place_in_file(const struct pe_file *f, const struct pe_section *s,
                               struct exti_error *err)
{
    struct exti_span raw;

    if (!s->raw_size)
        return 0;
    if (s->raw_offset < f->size_of_headers || s->raw_offset % f->file_alignment)
        return section_fail(s, POINTER_TO_RAW_DATA, err, "PointerToRawData", s->raw_offset,
                            "a multiple of FileAlignment from", f->size_of_headers);
    if (s->raw_size % f->file_alignment)
        return section_fail(s, SIZE_OF_RAW_DATA, err, "SizeOfRawData", s->raw_size,
                            "a multiple of FileAlignment", f->file_alignment);
    /* Windows maps such files flat and ignores their section table. */
    if (f->section_alignment < 4096 && s->rva != s->raw_offset)
        return section_fail(s, POINTER_TO_RAW_DATA, err, "PointerToRawData", s->raw_offset,
                            "its VirtualAddress (SectionAlignment is below a page)", s->rva);
    return exti__span_sub(f->file, s->raw_offset, s->raw_size, "section contents", &raw, err);
}

/* Sections must not share bytes: an edit of one would change the other. */
static int check_overlap(const struct pe_file *f, const struct pe_section *s,
                         struct exti_error *err)
{
    for (const struct pe_section *o = f->sections; o < s; o++)
        if (s->raw_size && o->raw_size && s->raw_offset < (uint64_t)o->raw_offset + o->raw_size &&
            o->raw_offset < (uint64_t)s->raw_offset + s->raw_size)
            return exti__fail(err, EXTI_E_FORMAT, s->at + POINTER_TO_RAW_DATA,
                              "section %s: its contents at 0x%" PRIx32
                              " overlap those of section %s",
                              s->name, s->raw_offset, o->name);
    return 0;
}

int exti__pe_read_sections(struct pe_file *f, uint64_t table_end, struct exti_error *err)
{
    struct exti_span table, header;
    uint64_t end = 0;
    int rc = exti__span_sub(f->file, f->sections_at, table_end - f->sections_at, "section table",
                            &table, err);

    if (rc)
        return rc;
    f->sections = exti__calloc(f->section_count, sizeof *f->sections);
    if (!f->sections)
        return exti__fail_nomem(err);
    f->raw_end = f->size_of_headers;
    for (size_t i = 0; i < f->section_count; i++) {
        struct pe_section *s = &f->sections[i];

        rc = exti__span_sub(table, i * SECTION_HEADER_SIZE, SECTION_HEADER_SIZE, "section header",
                            &header, err);
        if (!rc)
            rc = read_section(s, header, err);
        if (!rc)
            rc = check_place_in_memory(f, s, &end, err);
        if (!rc)
            rc = check_place_in_file(f, s, err);
        if (!rc)
            rc = check_overlap(f, s, err);
        if (rc)
            return rc;
        if (s->raw_size && (uint64_t)s->raw_offset + s->raw_size > f->raw_end)
            f->raw_end = (uint64_t)s->raw_offset + s->raw_size;
    }
    return 0;
}
