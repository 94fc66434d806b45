/* Segments, sections, and the space between the load commands and the first section. */
#include "macho/read/macho_segments.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "macho/read/macho_command.h"

/* dyld counts segments in 16 bits, bind opcodes in 4; linkers write at most a dozen. */
enum { MAX_SEGMENTS = 256 };

/* n_sect of an nlist is one byte, and 0 means no section. */
enum { MAX_SECTIONS = 255 };

/* Reads a name field of 16 bytes.  Characters that no linker writes become '?' for messages. */
static void read_fixed_name(struct exti_cur *c, char name[17])
{
    for (int i = 0; i < 16; i++) {
        uint8_t byte = exti__cur_u8(c);

        name[i] = (char)(byte && (byte < 0x20 || byte > 0x7e) ? '?' : byte);
    }
    name[16] = 0;
}

static bool is_zerofill(const struct macho_section *s)
{
    switch (s->flags & SECTION_TYPE) {
    case S_ZEROFILL:
    case S_GB_ZEROFILL:
    case S_THREAD_LOCAL_ZEROFILL:
        return true;
    default:
        return false;
    }
}

/* Offsets in section_64 of the fields that messages point to. */
enum { SECTION_ADDR = 32, SECTION_SIZE = 40, SECTION_OFFSET = 48, SECTION_NRELOC = 60 };

static int fail_section(const struct macho_file *f, const struct macho_section *s, uint32_t at,
                        int code, struct exti_error *err, const char *what, uint64_t value)
{
    return exti__fail(err, code, f->file.base + s->at + at, "section %s,%s: %s 0x%" PRIx64,
                      s->segment, s->name, what, value);
}

static int check_section_bounds(const struct macho_file *f, const struct macho_segment *seg,
                                const struct macho_section *s, struct exti_error *err)
{
    uint64_t into;

    if (s->nreloc)
        return fail_section(f, s, SECTION_NRELOC, EXTI_E_UNSUPPORTED, err,
                            "has relocations, as only object files may:", s->nreloc);
    if (s->addr < seg->vmaddr || s->addr - seg->vmaddr > seg->vmsize)
        return fail_section(f, s, SECTION_ADDR, EXTI_E_FORMAT, err, "is outside of its segment, at",
                            s->addr);
    into = s->addr - seg->vmaddr;
    if (s->size > seg->vmsize - into)
        return fail_section(f, s, SECTION_SIZE, EXTI_E_FORMAT, err,
                            "ends outside of its segment, whose end is", seg->vmaddr + seg->vmsize);
    if (!s->size || is_zerofill(s))
        return 0;
    if (into > seg->filesize || s->size > seg->filesize - into)
        return fail_section(f, s, SECTION_SIZE, EXTI_E_FORMAT, err,
                            "ends outside of its segment's contents, whose size is", seg->filesize);
    if (s->offset != seg->fileoff + into)
        return fail_section(f, s, SECTION_OFFSET, EXTI_E_FORMAT, err,
                            "its offset does not match its address, which is at",
                            seg->fileoff + into);
    return 0;
}

static void read_sections(struct macho_file *f, const struct macho_segment *seg, struct exti_cur *c)
{
    for (size_t i = 0; i < seg->section_count; i++) {
        struct macho_section *s = &f->sections[f->section_count++];

        s->at = f->commands[seg->command].at + c->at;
        read_fixed_name(c, s->name);
        read_fixed_name(c, s->segment);
        s->addr = exti__cur_u64(c);
        s->size = exti__cur_u64(c);
        s->offset = exti__cur_u32(c);
        s->align = exti__cur_u32(c);
        s->reloff = exti__cur_u32(c);
        s->nreloc = exti__cur_u32(c);
        s->flags = exti__cur_u32(c);
        s->reserved1 = exti__cur_u32(c);
        s->reserved2 = exti__cur_u32(c);
        exti__cur_skip(c, 4);
    }
}

/* dyld's validSegment, and the page alignment that mapping needs. */
static int check_segment_fields(const struct macho_file *f, const struct macho_segment *s,
                                struct exti_error *err)
{
    struct exti_span unused;
    uint64_t end;

    if (!exti__add(s->vmaddr, s->vmsize, &end))
        return exti__macho_fail(f, s->command, 24, EXTI_E_FORMAT, err,
                                "0x%" PRIx64 " bytes from 0x%" PRIx64 " end past the address space",
                                s->vmsize, s->vmaddr);
    if (s->filesize > s->vmsize && (s->vmsize || s->initprot))
        return exti__macho_fail(f, s->command, 48, EXTI_E_FORMAT, err,
                                "filesize 0x%" PRIx64 " exceeds vmsize 0x%" PRIx64, s->filesize,
                                s->vmsize);
    if (s->initprot & ~7u)
        return exti__macho_fail(f, s->command, 60, EXTI_E_FORMAT, err,
                                "initprot is 0x%" PRIx32 ", with bits other than rwx", s->initprot);
    if (s->vmaddr % f->page)
        return exti__macho_fail(f, s->command, 24, EXTI_E_FORMAT, err,
                                "vmaddr 0x%" PRIx64
                                " is not a multiple of the page size 0x%" PRIx64,
                                s->vmaddr, f->page);
    if (s->filesize && s->fileoff % f->page)
        return exti__macho_fail(f, s->command, 40, EXTI_E_FORMAT, err,
                                "fileoff 0x%" PRIx64
                                " is not a multiple of the page size 0x%" PRIx64,
                                s->fileoff, f->page);
    if (!s->filesize)
        return 0;
    if (exti__span_sub(f->file, s->fileoff, s->filesize, "", &unused, NULL))
        return exti__macho_fail(f, s->command, 40, EXTI_E_FORMAT, err,
                                "0x%" PRIx64 " bytes at 0x%" PRIx64
                                " do not fit into the file of 0x%zx",
                                s->filesize, s->fileoff, f->file.n);
    return 0;
}

int exti__macho_read_segment(struct macho_file *f, size_t i, struct exti_error *err)
{
    struct exti_cur c = exti__cur(f->commands[i].s, false);
    struct macho_segment *s = &f->segments[f->segment_count];
    uint32_t nsects;

    *s = (struct macho_segment){.command = i, .first_section = f->section_count};
    exti__cur_skip(&c, 8);
    read_fixed_name(&c, s->name);
    s->vmaddr = exti__cur_u64(&c);
    s->vmsize = exti__cur_u64(&c);
    s->fileoff = exti__cur_u64(&c);
    s->filesize = exti__cur_u64(&c);
    s->maxprot = exti__cur_u32(&c);
    s->initprot = exti__cur_u32(&c);
    nsects = exti__cur_u32(&c);
    s->flags = exti__cur_u32(&c);
    f->segment_count++; /* messages include its name from here on */
    if (f->segment_count > MAX_SEGMENTS)
        return exti__macho_fail(f, i, 0, EXTI_E_UNSUPPORTED, err, "more than %d segments",
                                MAX_SEGMENTS);
    if (f->commands[i].s.n != SEGMENT_COMMAND_64_SIZE + SECTION_64_SIZE * (uint64_t)nsects)
        return exti__macho_fail(f, i, 64, EXTI_E_FORMAT, err,
                                "cmdsize is %zu, not %u and %u for each of %" PRIu32 " sections",
                                f->commands[i].s.n, SEGMENT_COMMAND_64_SIZE, SECTION_64_SIZE,
                                nsects);
    if (nsects > MAX_SECTIONS - f->section_count)
        return exti__macho_fail(f, i, 64, EXTI_E_UNSUPPORTED, err,
                                "more than %d sections, which symbols cannot number", MAX_SECTIONS);
    s->section_count = nsects;
    read_sections(f, s, &c);
    return check_segment_fields(f, s, err);
}

/* ---- segments against each other ------------------------------------------------------------- */

static bool overlap(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size)
{
    return a_size && b_size && (a < b ? b - a < a_size : a - b < b_size);
}

static int check_segment_pair(const struct macho_file *f, const struct macho_segment *a,
                              const struct macho_segment *b, struct exti_error *err)
{
    if (overlap(a->fileoff, a->filesize, b->fileoff, b->filesize))
        return exti__macho_fail(f, b->command, 40, EXTI_E_FORMAT, err,
                                "shares bytes of the file with %s",
                                exti__macho_name(f, a->command).text);
    if (overlap(a->vmaddr, a->vmsize, b->vmaddr, b->vmsize))
        return exti__macho_fail(f, b->command, 24, EXTI_E_FORMAT, err, "shares addresses with %s",
                                exti__macho_name(f, a->command).text);
    return 0;
}

static int find_named(const struct macho_file *f, const char *name,
                      const struct macho_segment **out, struct exti_error *err)
{
    for (size_t i = 0; i < f->segment_count; i++) {
        if (strcmp(f->segments[i].name, name) != 0)
            continue;
        if (*out)
            return exti__macho_fail(f, f->segments[i].command, 8, EXTI_E_FORMAT, err,
                                    "a second segment of that name");
        *out = &f->segments[i];
    }
    if (!*out)
        return exti__macho_fail(f, MACHO_HEADER, 16, EXTI_E_FORMAT, err, "no segment %s", name);
    return 0;
}

static int check_text_segment(const struct macho_file *f, struct exti_error *err)
{
    if (f->text->fileoff)
        return exti__macho_fail(f, f->text->command, 40, EXTI_E_FORMAT, err,
                                "fileoff is 0x%" PRIx64 "; it must be 0, to map the header",
                                f->text->fileoff);
    if (f->text->filesize < f->commands_end)
        return exti__macho_fail(f, f->text->command, 48, EXTI_E_FORMAT, err,
                                "filesize 0x%" PRIx64
                                " does not hold the load commands, which end at 0x%" PRIx64,
                                f->text->filesize, f->commands_end);
    /* Offsets from the image's start count from __TEXT.  Only a main program's __PAGEZERO lies
     * below it. */
    for (size_t i = 0; i < f->segment_count; i++) {
        const struct macho_segment *s = &f->segments[i];

        if (s->vmsize && s->filesize && s->vmaddr < f->text->vmaddr)
            return exti__macho_fail(f, s->command, 24, EXTI_E_UNSUPPORTED, err,
                                    "vmaddr 0x%" PRIx64 " is below __TEXT's, 0x%" PRIx64, s->vmaddr,
                                    f->text->vmaddr);
    }
    return 0;
}

/* A rewrite lays __LINKEDIT out anew and may enlarge it, so it must be last.  Signing the file
 * again would drop bytes after the signature; codesign refuses such files. */
static int check_linkedit_segment(const struct macho_file *f, struct exti_error *err)
{
    const struct macho_segment *l = f->linkedit;

    if (l->section_count)
        return exti__macho_fail(f, l->command, 64, EXTI_E_UNSUPPORTED, err,
                                "has sections, which belong in other segments");
    for (size_t i = 0; i < f->segment_count; i++) {
        const struct macho_segment *s = &f->segments[i];

        if (s == l)
            continue;
        if (s->filesize && s->fileoff > l->fileoff)
            return exti__macho_fail(f, s->command, 40, EXTI_E_FORMAT, err,
                                    "follows __LINKEDIT, which must be last in the file");
        if (s->vmsize && s->vmaddr > l->vmaddr)
            return exti__macho_fail(f, s->command, 24, EXTI_E_UNSUPPORTED, err,
                                    "has addresses above those of __LINKEDIT, which may grow");
    }
    if (l->fileoff < f->commands_end || l->fileoff > f->file.n)
        return exti__macho_fail(f, l->command, 40, EXTI_E_FORMAT, err,
                                "fileoff is 0x%" PRIx64
                                ", not from the load commands' end 0x%" PRIx64
                                " to the file's, 0x%zx",
                                l->fileoff, f->commands_end, f->file.n);
    if (f->file.n - l->fileoff != l->filesize)
        return exti__macho_fail(f, l->command, 48, EXTI_E_UNSUPPORTED, err,
                                "%" PRIu64 " bytes follow it, which no signature can cover",
                                f->file.n - l->fileoff - l->filesize);
    return 0;
}

/* The space for load commands ends at __TEXT's first section, or at the end of __TEXT. */
static int find_room(struct macho_file *f, struct exti_error *err)
{
    f->room_end = f->text->filesize;
    for (size_t i = 0; i < f->text->section_count; i++) {
        const struct macho_section *s = &f->sections[f->text->first_section + i];

        if (!s->size || is_zerofill(s) || s->offset >= f->room_end)
            continue;
        if (s->offset < f->commands_end)
            return fail_section(f, s, SECTION_OFFSET, EXTI_E_FORMAT, err,
                                "starts within the load commands, which end at", f->commands_end);
        f->room_end = s->offset;
    }
    return 0;
}

int exti__macho_check_segments(struct macho_file *f, struct exti_error *err)
{
    int rc = find_named(f, "__TEXT", &f->text, err);

    if (!rc)
        rc = find_named(f, "__LINKEDIT", &f->linkedit, err);
    if (!rc)
        rc = check_text_segment(f, err);
    if (!rc)
        rc = check_linkedit_segment(f, err);
    for (size_t i = 1; !rc && i < f->segment_count; i++)
        for (size_t k = 0; !rc && k < i; k++)
            rc = check_segment_pair(f, &f->segments[k], &f->segments[i], err);
    for (size_t i = 0; !rc && i < f->segment_count; i++)
        for (size_t k = 0; !rc && k < f->segments[i].section_count; k++)
            rc = check_section_bounds(f, &f->segments[i],
                                      &f->sections[f->segments[i].first_section + k], err);
    return rc ? rc : find_room(f, err);
}

int exti__macho_at(const struct macho_file *f, uint64_t vmaddr, uint64_t len, const char *what,
                   struct exti_span *out, struct exti_error *err)
{
    for (size_t i = 0; i < f->segment_count; i++) {
        const struct macho_segment *s = &f->segments[i];

        if (vmaddr >= s->vmaddr && vmaddr - s->vmaddr < s->filesize &&
            len <= s->filesize - (vmaddr - s->vmaddr))
            return exti__span_sub(f->file, s->fileoff + (vmaddr - s->vmaddr), len, what, out, err);
    }
    return exti__fail(err, EXTI_E_FORMAT, EXTI_NO_OFFSET,
                      "%s: %" PRIu64 " bytes at address 0x%" PRIx64
                      " are not in any segment's contents",
                      what, len, vmaddr);
}
