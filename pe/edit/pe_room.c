/* Makes room at the end of the image and the file: a new section, whose header needs 40 zero bytes
 * behind the section table, or a longer last section. */
#include "pe/edit/pe_room.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "pe/edit/pe_put.h"
#include "pe/read/pe_address.h"

/* Fields of the COFF, optional and section headers. */
enum {
    COFF_SECTION_COUNT = 2,
    COFF_SYMBOLS = 8,
    OPTIONAL_INITIALIZED_SIZE = 8,
    OPTIONAL_IMAGE_SIZE = 56,
    OPTIONAL_HEADERS_SIZE = 60,
    SECTION_VIRTUAL_SIZE = 8,
    SECTION_RAW_SIZE = 16,
    SECTION_RAW = 20,
    SECTION_CHARACTERISTICS = 36,
    DEBUG_RAW = 24
};
#define NEW_CHARACTERISTICS (IMAGE_SCN_CNT_INITIALIZED_DATA | IMAGE_SCN_MEM_READ)

static uint64_t table_end(const struct pe_edit *e)
{
    return e->f->sections_at + e->f->section_count * SECTION_HEADER_SIZE - e->slid;
}

/* Zeros behind the section headers of the copy so far. */
static uint64_t header_room(const struct pe_edit *e)
{
    uint64_t at = table_end(e), n = 0;

    while (at + n < e->head.n && !e->head.p[at + n])
        n++;
    return n;
}

static const struct pe_section *last_section(const struct pe_file *f)
{
    return &f->sections[f->section_count - 1];
}

/* The NT headers can replace the MS-DOS stub: the loader uses nothing of it but e_lfanew. */
static bool can_slide_headers(const struct pe_edit *e)
{
    return header_room(e) + (e->f->nt_at - DOS_HEADER_SIZE) >= SECTION_HEADER_SIZE;
}

static void slide_headers(struct pe_edit *e)
{
    const uint64_t end = table_end(e), from = e->f->nt_at, gain = from - DOS_HEADER_SIZE;

    memmove(e->head.p + DOS_HEADER_SIZE, e->head.p + from, (size_t)(end - from));
    memset(e->head.p + end - gain, 0, (size_t)gain);
    exti__put_u32(e->head.p + DOS_E_LFANEW, DOS_HEADER_SIZE, false);
    e->slid = gain;
}

static int move_field(struct pe_edit *e, uint64_t at, uint32_t value, struct exti_error *err)
{
    if (!value || value < e->grow_at)
        return 0;
    return exti__pe_put_u32(e, at, value + (uint32_t)e->grow_by, "file offset", err);
}

static int move_debug(struct pe_edit *e, struct exti_error *err)
{
    const struct pe_directory_entry *d = &e->f->directories[IMAGE_DIRECTORY_ENTRY_DEBUG];
    struct exti_span entries;
    int rc;

    if (!d->rva)
        return 0;
    rc = exti__pe_at(e->f, d->rva, d->size, "debug directory", &entries, err);
    for (size_t at = 0; !rc && at + DEBUG_DIRECTORY_SIZE <= entries.n; at += DEBUG_DIRECTORY_SIZE)
        rc = move_field(e, entries.base + at + DEBUG_RAW, exti__pe_u32(entries.p + at + DEBUG_RAW),
                        err);
    return rc;
}

/* Adjusts file offsets to grown headers.  Sections of an image have no COFF relocations or line
 * numbers whose offsets would change. */
static int move_offsets(struct pe_edit *e, struct exti_error *err)
{
    const struct pe_file *f = e->f;
    int rc = move_field(e, f->nt_at + 4 + COFF_SYMBOLS, f->symbols_at, err);

    for (size_t i = 0; !rc && i < f->section_count; i++)
        rc = move_field(e, f->sections[i].at + SECTION_RAW, f->sections[i].raw_offset, err);
    return rc ? rc : move_debug(e, err);
}

/* Whether anything follows the sections besides COFF symbols and their strings.  Whoever reads it
 * may rely on its file offset. */
static bool has_foreign_overlay(const struct pe_edit *e)
{
    const struct pe_file *f = e->f;
    uint64_t end = f->symbols_at + (uint64_t)f->symbol_count * COFF_SYMBOL_SIZE;
    struct exti_span size;

    if (e->keep <= f->raw_end)
        return false;
    if (f->symbols_at != f->raw_end || exti__span_sub(f->file, end, 4, "string table", &size, NULL))
        return true;
    end += exti__pe_u32(size.p);
    return end > e->keep || e->keep - end >= 8;
}

/* The headers can grow up to the first section's RVA. */
static bool can_grow_headers(const struct pe_edit *e)
{
    const struct pe_file *f = e->f;

    return table_end(e) + header_room(e) == e->head.n && !has_foreign_overlay(e) &&
           e->head.n + f->file_alignment <= f->sections[0].rva;
}

static int grow_headers(struct pe_edit *e, struct exti_error *err)
{
    int rc;

    e->grow_at = e->head.n;
    e->grow_by = e->f->file_alignment;
    rc = move_offsets(e, err);
    if (!rc)
        rc = exti__pe_put_u32(e, e->f->optional_at + OPTIONAL_HEADERS_SIZE,
                              (uint32_t)(e->grow_at + e->grow_by), "SizeOfHeaders", err);
    return rc ? rc : exti__buf_zeros(&e->head, (size_t)e->grow_by, err);
}

/* Updates the image's sizes for a last section that ends at RVA `end` and has `more` additional
 * bytes in the file. */
static int put_sizes(struct pe_edit *e, uint64_t end, uint64_t more, struct exti_error *err)
{
    const uint64_t at = e->f->optional_at;
    uint64_t image = 0, data = exti__pe_u32(e->head.p + at + OPTIONAL_INITIALIZED_SIZE) + more;
    int rc;

    exti__align(end, e->f->section_alignment, &image);
    if (image > INT32_MAX || data > UINT32_MAX)
        return exti__fail(err, EXTI_E_NOSPACE, at + OPTIONAL_IMAGE_SIZE,
                          "no room for %" PRIu32 " bytes of names: SizeOfImage would be 0x%" PRIx64,
                          e->blob_size, image);
    rc = exti__pe_put_u32(e, at + OPTIONAL_IMAGE_SIZE, (uint32_t)image, "SizeOfImage", err);
    return rc ? rc
              : exti__pe_put_u32(e, at + OPTIONAL_INITIALIZED_SIZE, (uint32_t)data,
                                 "SizeOfInitializedData", err);
}

static int add_section(struct pe_edit *e, struct exti_error *err)
{
    const struct pe_file *f = e->f;
    const struct pe_section *last = last_section(f);
    uint64_t rva = 0, raw = 0, size = 0;
    uint8_t header[SECTION_HEADER_SIZE] = PE_NEW_SECTION;
    int rc;

    exti__align((uint64_t)last->rva + last->virtual_size, f->section_alignment, &rva);
    exti__align(e->keep + e->grow_by, f->file_alignment, &raw);
    exti__align(e->blob_size, f->file_alignment, &size);
    if (raw + size > UINT32_MAX)
        return exti__fail(err, EXTI_E_NOSPACE, e->keep,
                          "no room for %" PRIu32 " bytes of names behind the file's end",
                          e->blob_size);
    rc = put_sizes(e, rva + e->blob_size, size, err);
    if (!rc)
        rc = exti__pe_put_u16(e, f->nt_at + 4 + COFF_SECTION_COUNT,
                              (uint16_t)(f->section_count + 1), "NumberOfSections", err);
    if (!rc)
        rc = exti__buf_zeros(&e->added, (size_t)size, err);
    if (rc)
        return rc;
    exti__put_u32(header + SECTION_VIRTUAL_SIZE, e->blob_size, false);
    exti__put_u32(header + SECTION_VIRTUAL_SIZE + 4, (uint32_t)rva, false);
    exti__put_u32(header + SECTION_RAW_SIZE, (uint32_t)size, false);
    exti__put_u32(header + SECTION_RAW, (uint32_t)raw, false);
    exti__put_u32(header + SECTION_CHARACTERISTICS, NEW_CHARACTERISTICS, false);
    e->added_pad = raw - e->keep - e->grow_by;
    e->blob_rva = (uint32_t)rva;
    e->blob_offset = e->keep;
    if (header_room(e) < sizeof header)
        slide_headers(e);
    return exti__buf_patch(&e->head, (size_t)table_end(e), header, sizeof header, err);
}

/* Whether the last section in memory is also last in the file, and of a kind that can hold
 * names. */
static bool can_extend(const struct pe_edit *e, const struct pe_section *last)
{
    return last->raw_size && (uint64_t)last->raw_offset + last->raw_size == e->keep &&
           last->characteristics & IMAGE_SCN_CNT_INITIALIZED_DATA &&
           last->virtual_size <= last->raw_size &&
           !(last->characteristics & (IMAGE_SCN_MEM_SHARED | IMAGE_SCN_MEM_EXECUTE));
}

static int extend_last_section(struct pe_edit *e, const struct pe_section *last,
                               struct exti_error *err)
{
    const uint64_t from = last->raw_size;
    uint64_t size = 0;
    int rc;

    exti__align(from + e->blob_size, e->f->file_alignment, &size);
    if (last->raw_offset + size > UINT32_MAX)
        return exti__fail(err, EXTI_E_NOSPACE, last->at,
                          "no room for %" PRIu32
                          " bytes of names: section %s would end at 0x%" PRIx64,
                          e->blob_size, last->name, last->raw_offset + size);
    rc = put_sizes(e, last->rva + from + e->blob_size, size - from, err);
    if (!rc)
        rc = exti__pe_put_u32(e, last->at + SECTION_VIRTUAL_SIZE, (uint32_t)(from + e->blob_size),
                              "section header", err);
    if (!rc)
        rc =
            exti__pe_put_u32(e, last->at + SECTION_RAW_SIZE, (uint32_t)size, "section header", err);
    /* The loader may discard such a section after loading. */
    if (!rc)
        rc = exti__pe_put_u32(e, last->at + SECTION_CHARACTERISTICS,
                              last->characteristics & ~IMAGE_SCN_MEM_DISCARDABLE, "section header",
                              err);
    if (!rc)
        rc = exti__buf_zeros(&e->added, (size_t)(size - from), err);
    e->blob_rva = (uint32_t)(last->rva + from);
    e->blob_offset = e->keep;
    return rc;
}

static int fail_without_room(const struct pe_edit *e, const struct pe_section *last,
                             struct exti_error *err)
{
    if (e->f->section_count >= PE_MOST_SECTIONS)
        return exti__fail(err, EXTI_E_NOSPACE, last->at,
                          "no room for %" PRIu32 " bytes of names: there are %zu sections, as many "
                          "as Windows maps, and the last one (%s) cannot be extended; use names "
                          "as short as the old",
                          e->blob_size, e->f->section_count, last->name);
    return exti__fail(err, EXTI_E_NOSPACE, table_end(e),
                      "no room for %" PRIu32 " bytes of names: the headers have %" PRIu64
                      " of %u bytes for a section's and cannot grow, and the last section (%s) "
                      "cannot be extended; use names as short as the old",
                      e->blob_size, header_room(e), SECTION_HEADER_SIZE, last->name);
}

int exti__pe_append(struct pe_edit *e, struct exti_error *err)
{
    const struct pe_section *last = last_section(e->f);
    const bool more = e->f->section_count < PE_MOST_SECTIONS;
    int rc = 0;

    /* An earlier rewrite's section grows first. */
    if (strcmp(last->name, PE_NEW_SECTION) == 0 && can_extend(e, last))
        return extend_last_section(e, last, err);
    if (more && (header_room(e) >= SECTION_HEADER_SIZE || can_slide_headers(e)))
        return add_section(e, err);
    if (more && can_grow_headers(e)) {
        rc = grow_headers(e, err);
        return rc ? rc : add_section(e, err);
    }
    return can_extend(e, last) ? extend_last_section(e, last, err)
                               : fail_without_room(e, last, err);
}
