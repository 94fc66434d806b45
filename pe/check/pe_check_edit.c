/* Headers, directories and section table equal the original's except for what an edit needs. */
#include "pe/check/pe_check_edit.h"

#include <inttypes.h>
#include <string.h>

#define ADDED_SECTION ".extiso"

enum { DIRECTORY = 8 };

/* Compares `n` bytes of the two headers. */
static void compare_header_bytes(struct pe_check *c, uint64_t b_at, uint64_t a_at, uint64_t n,
                                 const char *what)
{
    struct exti_span b, a;

    if (exti__span_sub(c->before.file, b_at, n, "", &b, NULL) ||
        exti__span_sub(c->after.file, a_at, n, "", &a, NULL) || memcmp(b.p, a.p, b.n) != 0)
        exti__pe_finding(c, a_at, "%s: differs from the original's", what);
}

static void compare_u32(struct pe_check *c, uint64_t at, const char *what, uint32_t now,
                        uint64_t least, uint64_t most)
{
    if (now < least || now > most)
        exti__pe_finding(c, at, "%s 0x%x, not 0x%" PRIx64, what, now, least);
}

/* The MS-DOS stub, which only MS-DOS runs, may give way to a section header. */
static void compare_dos(struct pe_check *c)
{
    const uint64_t was = c->before.nt, now = c->after.nt;

    compare_header_bytes(c, 0, 0, DOS_E_LFANEW, "MS-DOS header");
    if (now > was || now < DOS_HEADER_SIZE)
        exti__pe_finding(c, DOS_E_LFANEW, "PE header at 0x%" PRIx64 ", not at 0x%" PRIx64, now,
                         was);
    else
        compare_header_bytes(c, DOS_HEADER_SIZE, DOS_HEADER_SIZE, now - DOS_HEADER_SIZE,
                             "MS-DOS stub");
}

static void compare_coff(struct pe_check *c)
{
    const struct pe_view *b = &c->before, *a = &c->after;
    const uint32_t moved = b->symbols_at >= c->raw_from ? (uint32_t)c->shift : 0;

    compare_header_bytes(c, b->nt, a->nt, 6, "machine");
    compare_header_bytes(c, b->nt + 8, a->nt + 8, 4, "TimeDateStamp");
    compare_u32(c, a->nt + 12, "PointerToSymbolTable", a->symbols_at, b->symbols_at + moved,
                b->symbols_at + moved);
    compare_header_bytes(c, b->nt + 16, a->nt + 16, 8, "COFF header");
}

/* The bytes that the copy's sections have more in the file. */
static uint64_t added_raw(const struct pe_check *c)
{
    uint64_t n = 0;

    for (size_t i = 0; i < c->after.section_count; i++)
        n += c->after.sections[i].raw_size;
    for (size_t i = 0; i < c->before.section_count; i++)
        n -= c->before.sections[i].raw_size;
    return n;
}

static void compare_optional(struct pe_check *c)
{
    const struct pe_view *b = &c->before, *a = &c->after;
    const uint64_t fixed = b->plus ? 112 : 96, rest = fixed + DIRECTORY * 16;
    const uint16_t forced = IMAGE_DLLCHARACTERISTICS_FORCE_INTEGRITY,
                   flags = c->same ? b->dll_flags : b->dll_flags & (uint16_t)~forced;
    const uint64_t data = exti__pe_word32(b->file.p + b->optional + 8) + added_raw(c);

    compare_header_bytes(c, b->optional, a->optional, 8, "optional header");
    compare_u32(c, a->optional + 8, "SizeOfInitializedData",
                exti__pe_word32(a->file.p + a->optional + 8), data, data);
    compare_header_bytes(c, b->optional + 12, a->optional + 12, 4, "SizeOfUninitializedData");
    compare_header_bytes(c, b->optional + 16, a->optional + 16, 4, "AddressOfEntryPoint");
    compare_header_bytes(c, b->optional + 20, a->optional + 20, 36, "optional header");
    compare_u32(c, a->optional + 60, "SizeOfHeaders", a->header_size, b->header_size,
                b->header_size + c->shift);
    compare_header_bytes(c, b->optional + 68, a->optional + 68, 2, "Subsystem");
    if (a->dll_flags != flags)
        exti__pe_finding(c, a->optional + 70, "DllCharacteristics 0x%x, not 0x%x", a->dll_flags,
                         flags);
    compare_header_bytes(c, b->optional + 72, a->optional + 72, fixed - 72, "optional header");
    if (b->optional_size > rest)
        compare_header_bytes(c, b->optional + rest, a->optional + rest, b->optional_size - rest,
                             "optional header");
}

/* Behind the section table the copy has zeros or the original's bytes; a new section header may
 * replace zeros alone, or bound imports. */
static void check_room(struct pe_check *c)
{
    const struct exti_span b = c->before.file, a = c->after.file;
    const uint32_t bound = c->before.directory[IMAGE_DIRECTORY_ENTRY_BOUND_IMPORT].rva,
                   bound_size = c->before.directory[IMAGE_DIRECTORY_ENTRY_BOUND_IMPORT].size;

    for (uint64_t i = c->before.table_end; i < c->after.table_end && i < c->raw_from; i++)
        if (b.p[i] && (i < bound || i - bound >= bound_size)) {
            exti__pe_finding(c, i, "section table: a header stands where the original has 0x%02x",
                             b.p[i]);
            return;
        }
    for (uint64_t i = c->after.table_end; i < c->raw_from + c->shift && i < a.n; i++) {
        const bool kept = i >= c->before.table_end && i < c->raw_from && b.p[i] == a.p[i];

        if (a.p[i] && !kept) {
            exti__pe_finding(c, i, "behind the section table: 0x%02x, not 0", a.p[i]);
            return;
        }
    }
}

int exti__pe_step_headers(struct pe_check *c, struct exti_error *err)
{
    (void)err;
    compare_dos(c);
    compare_coff(c);
    compare_optional(c);
    check_room(c);
    return 0;
}

/* Forwarders must lie in the export directory's range, so longer ones move it.  The new range ends
 * with them. */
static bool may_move_exports(const struct pe_check *c)
{
    const struct pe_exported *x = &c->exports_after;

    return c->exports_before.present && x->present && c->forwarders_change &&
           !exti__pe_view_section(&c->before, x->rva) &&
           exti__pe_forwarders_end(&c->after, x) == (uint64_t)x->rva + x->size;
}

int exti__pe_step_directories(struct pe_check *c, struct exti_error *err)
{
    const uint64_t at = c->after.optional + (c->after.plus ? 112 : 96);

    (void)err;
    for (size_t i = 0; i < IMAGE_NUMBEROF_DIRECTORY_ENTRIES && !c->findings.stop; i++) {
        const uint32_t rva = c->after.directory[i].rva, size = c->after.directory[i].size;

        if (rva == c->before.directory[i].rva && size == c->before.directory[i].size)
            continue;
        if (i == IMAGE_DIRECTORY_ENTRY_SECURITY || i == IMAGE_DIRECTORY_ENTRY_BOUND_IMPORT)
            continue;
        if (i == IMAGE_DIRECTORY_ENTRY_EXPORT && may_move_exports(c))
            continue;
        exti__pe_finding(c, at + DIRECTORY * i,
                         "directory %zu: 0x%x bytes at 0x%x, not 0x%x at 0x%x", i, size, rva,
                         c->before.directory[i].size, c->before.directory[i].rva);
    }
    return 0;
}

int exti__pe_step_signature(struct pe_check *c, struct exti_error *err)
{
    const size_t i = IMAGE_DIRECTORY_ENTRY_SECURITY;

    (void)err;
    if (!c->same && (c->after.directory[i].rva || c->after.directory[i].size))
        exti__pe_finding(
            c, EXTI_NO_OFFSET,
            "certificates, 0x%x bytes at 0x%x, which sign the original and not this copy",
            c->after.directory[i].size, c->after.directory[i].rva);
    return 0;
}

/* ---- sections -------------------------------------------------------------------------------- */

static bool holds_directory(const struct pe_check *c, const struct pe_view_section *s)
{
    static const size_t kinds[] = {IMAGE_DIRECTORY_ENTRY_EXPORT, IMAGE_DIRECTORY_ENTRY_IMPORT,
                                   IMAGE_DIRECTORY_ENTRY_DELAY_IMPORT};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const uint32_t rva = c->before.directory[kinds[i]].rva;

        if (rva && rva >= s->rva && rva - s->rva < s->extent)
            return true;
    }
    return false;
}

/* New names must stay mapped, and must not be writable unless the names that they replace were. */
static void check_section_growth(struct pe_check *c, const struct pe_view_section *b,
                                 const struct pe_view_section *a, bool last)
{
    const uint32_t never = IMAGE_SCN_MEM_SHARED | IMAGE_SCN_MEM_EXECUTE | IMAGE_SCN_MEM_DISCARDABLE;
    const uint64_t room = a->raw_size;

    if (a->extent < b->extent || a->extent > room || (a->raw_size != b->raw_size && !last))
        exti__pe_finding(c, a->at + 8,
                         "section %s: 0x%x bytes, 0x%x in the file, not 0x%x and 0x%x", a->name,
                         a->virtual_size, a->raw_size, b->virtual_size, b->raw_size);
    else if (a->flags & never ||
             (a->flags & IMAGE_SCN_MEM_WRITE && !last && !holds_directory(c, b)))
        exti__pe_finding(c, a->at + 8, "section %s: grown, with characteristics 0x%x", a->name,
                         a->flags);
}

static void compare_section(struct pe_check *c, const struct pe_view_section *b,
                            const struct pe_view_section *a, bool last)
{
    const uint64_t raw_at = b->raw_at ? b->raw_at + c->shift : 0;
    const bool grown = a->virtual_size != b->virtual_size || a->raw_size != b->raw_size;
    /* A discardable section loses its flag when it grows, as names must stay mapped. */
    const uint32_t kept =
        last && grown ? b->flags & ~(uint32_t)IMAGE_SCN_MEM_DISCARDABLE : b->flags;

    if (memcmp(a->name, b->name, 8) != 0 || a->rva != b->rva || a->raw_at != raw_at ||
        (a->flags != b->flags && a->flags != kept)) {
        exti__pe_finding(c, a->at,
                         "section %s at 0x%x, 0x%x in the file, with characteristics 0x%x; "
                         "expected %s at 0x%x, 0x%" PRIx64 " in the file, with 0x%x",
                         a->name, a->rva, a->raw_at, a->flags, b->name, b->rva, raw_at, b->flags);
        return;
    }
    compare_header_bytes(c, b->at + 24, a->at + 24, 12, "section header");
    if (grown)
        check_section_growth(c, b, a, last);
}

int exti__pe_step_sections(struct pe_check *c, struct exti_error *err)
{
    const size_t n = c->before.section_count;

    (void)err;
    if (c->after.section_count < n || c->after.section_count > n + 1) {
        exti__pe_finding(c, c->after.nt + 6, "%zu sections, not %zu or one more",
                         c->after.section_count, n);
        return 0;
    }
    for (size_t i = 0; i < n && !c->findings.stop; i++)
        compare_section(c, &c->before.sections[i], &c->after.sections[i], i + 1 == n);
    return 0;
}

int exti__pe_step_added(struct pe_check *c, struct exti_error *err)
{
    const uint32_t flags = IMAGE_SCN_CNT_INITIALIZED_DATA | IMAGE_SCN_MEM_READ;

    (void)err;
    for (size_t i = c->before.section_count; i < c->after.section_count && !c->findings.stop; i++) {
        const struct pe_view_section *s = &c->after.sections[i];

        if (s->flags != flags || strcmp(s->name, ADDED_SECTION) != 0 ||
            exti__pe_word64(c->after.file.p + s->at + 24) ||
            exti__pe_word32(c->after.file.p + s->at + 32))
            exti__pe_finding(c, s->at,
                             "section %s: characteristics 0x%x; an added section is " ADDED_SECTION
                             " with 0x%x, without relocations or line numbers",
                             s->name, s->flags, flags);
        if (!s->raw_at || !s->virtual_size || s->virtual_size > s->raw_size)
            exti__pe_finding(c, s->at + 8, "section %s: 0x%x bytes, 0x%x at 0x%x in the file",
                             s->name, s->virtual_size, s->raw_size, s->raw_at);
    }
    return 0;
}
