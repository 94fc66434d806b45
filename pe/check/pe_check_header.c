/* The loader's rules, and those of tools, for headers, sections and directories. */
#include "pe/check/pe_check_header.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/checked.h"

enum { PAGE = 4096, RVAS_AND_SIZES = 8 };

int exti__pe_rule_machine(struct pe_check *c, const struct pe_view *v, struct exti_error *err)
{
    const uint32_t fixed = v->plus ? 112 : 96;
    const bool plus = v->machine != IMAGE_FILE_MACHINE_I386;

    (void)err;
    if (v->nt % 4)
        exti__pe_broken(c, DOS_E_LFANEW, "", "PE header at 0x%" PRIx64 ", not a multiple of 4",
                        v->nt);
    if (v->machine != IMAGE_FILE_MACHINE_I386 && v->machine != IMAGE_FILE_MACHINE_AMD64 &&
        v->machine != IMAGE_FILE_MACHINE_ARM64)
        exti__pe_broken(c, v->nt + 4, "", "machine 0x%x, not i386, x86-64 or arm64", v->machine);
    else if (plus != v->plus)
        exti__pe_broken(c, v->optional, "", "machine 0x%x has an optional header of kind 0x%x",
                        v->machine, v->magic);
    if (v->directory_count > IMAGE_NUMBEROF_DIRECTORY_ENTRIES ||
        fixed + RVAS_AND_SIZES * v->directory_count > v->optional_size)
        exti__pe_broken(c, v->optional + fixed - 4, "",
                        "%u directories in an optional header of %u bytes", v->directory_count,
                        v->optional_size);
    return 0;
}

int exti__pe_rule_library(struct pe_check *c, const struct pe_view *v, struct exti_error *err)
{
    const uint16_t wanted = IMAGE_FILE_DLL | IMAGE_FILE_EXECUTABLE_IMAGE;
    uint64_t at, end;

    (void)err;
    if ((v->flags & wanted) != wanted)
        exti__pe_broken(c, v->nt + 22, "", "characteristics 0x%x are not those of a DLL", v->flags);
    if (v->flags & IMAGE_FILE_RELOCS_STRIPPED)
        exti__pe_broken(c, v->nt + 22, "", "no relocations: only one copy can be loaded");
    if (v->dll_flags & IMAGE_DLLCHARACTERISTICS_FORCE_INTEGRITY &&
        !exti__pe_view_signed(v, &at, &end))
        exti__pe_broken(c, v->optional + 70, "",
                        "requires a signature (FORCE_INTEGRITY) but has none");
    if (v->directory[IMAGE_DIRECTORY_ENTRY_COM_DESCRIPTOR].rva)
        exti__pe_broken(c, EXTI_NO_OFFSET, "", "is a .NET assembly");
    return 0;
}

int exti__pe_rule_alignment(struct pe_check *c, const struct pe_view *v, struct exti_error *err)
{
    (void)err;
    if (!exti__is_power_of_2(v->file_align) || v->file_align < 512 || v->file_align > 65536)
        exti__pe_broken(c, v->optional + 36, "",
                        "FileAlignment 0x%x, not a power of two from 0x200 to 0x10000",
                        v->file_align);
    if (!exti__is_power_of_2(v->section_align) || v->section_align < v->file_align)
        exti__pe_broken(c, v->optional + 32, "",
                        "SectionAlignment 0x%x, not a power of two from 0x%x on", v->section_align,
                        v->file_align);
    if (v->section_align >= PAGE)
        return 0;
    /* Windows maps such a file flat. */
    if (v->section_align != v->file_align)
        exti__pe_broken(c, v->optional + 32, "",
                        "SectionAlignment 0x%x is less than a page and not FileAlignment",
                        v->section_align);
    for (size_t i = 0; i < v->section_count; i++)
        if (v->sections[i].raw_size && v->sections[i].raw_at != v->sections[i].rva)
            exti__pe_broken(c, v->sections[i].at + 20, v->sections[i].name,
                            "section %s: at 0x%x in the file, not at 0x%x as in the image",
                            v->sections[i].name, v->sections[i].raw_at, v->sections[i].rva);
    return 0;
}

int exti__pe_rule_headers(struct pe_check *c, const struct pe_view *v, struct exti_error *err)
{
    (void)err;
    if (!v->sections_said || v->sections_said > PE_MOST_SECTIONS)
        exti__pe_broken(c, v->nt + 6, "", "%u sections, not 1 to %u", v->sections_said,
                        PE_MOST_SECTIONS);
    if (v->table_end > v->header_size || v->header_size > v->file.n)
        exti__pe_broken(c, v->optional + 60, "",
                        "SizeOfHeaders 0x%x: the section table ends at 0x%" PRIx64
                        ", the file at 0x%zx",
                        v->header_size, v->table_end, v->file.n);
    if (exti__is_power_of_2(v->file_align) && v->header_size % v->file_align)
        exti__pe_broken(c, v->optional + 60, "",
                        "SizeOfHeaders 0x%x, not a multiple of FileAlignment 0x%x", v->header_size,
                        v->file_align);
    for (size_t i = 0; i < v->section_count; i++)
        if ((v->sections[i].raw_at && v->sections[i].raw_at < v->header_size) ||
            v->sections[i].rva < v->header_size)
            exti__pe_broken(c, v->sections[i].at, v->sections[i].name,
                            "section %s: at 0x%x in the file and 0x%x in the image, where the "
                            "headers are",
                            v->sections[i].name, v->sections[i].raw_at, v->sections[i].rva);
    return 0;
}

/* The end of section `i` in the image, as the loader counts it. */
static uint64_t end_of(const struct pe_view *v, size_t i)
{
    uint64_t end = v->sections[i].rva + v->sections[i].extent;

    exti__align(end, v->section_align, &end);
    return end;
}

int exti__pe_rule_addresses(struct pe_check *c, const struct pe_view *v, struct exti_error *err)
{
    (void)err;
    for (size_t i = 0; i < v->section_count; i++) {
        const struct pe_view_section *s = &v->sections[i];

        if (v->section_align && s->rva % v->section_align)
            exti__pe_broken(c, s->at + 12, s->name,
                            "section %s: at 0x%x, not a multiple of SectionAlignment 0x%x", s->name,
                            s->rva, v->section_align);
        else if (i && s->rva != end_of(v, i - 1))
            exti__pe_broken(c, s->at + 12, s->name,
                            "section %s: at 0x%x, not at 0x%" PRIx64
                            ", where the previous one ends",
                            s->name, s->rva, end_of(v, i - 1));
    }
    return 0;
}

int exti__pe_rule_image_size(struct pe_check *c, const struct pe_view *v, struct exti_error *err)
{
    const uint64_t end = v->section_count ? end_of(v, v->section_count - 1) : 0;

    (void)err;
    if (end && v->image_size != end)
        exti__pe_broken(c, v->optional + 56, "",
                        "SizeOfImage 0x%x, not 0x%" PRIx64 ", where the last section ends",
                        v->image_size, end);
    return 0;
}

static void check_overlap(struct pe_check *c, const struct pe_view *v, size_t i)
{
    const struct pe_view_section *s = &v->sections[i];

    for (size_t j = 0; j < i; j++) {
        const struct pe_view_section *t = &v->sections[j];

        if (s->raw_at && t->raw_at && s->raw_at < (uint64_t)t->raw_at + t->raw_size &&
            t->raw_at < (uint64_t)s->raw_at + s->raw_size)
            exti__pe_broken(c, s->at + 20, s->name, "sections %s and %s share bytes of the file",
                            t->name, s->name);
    }
}

static void check_raw(struct pe_check *c, const struct pe_view *v, const struct pe_view_section *s)
{
    if (exti__is_power_of_2(v->file_align) &&
        (s->raw_at % v->file_align || s->raw_size % v->file_align))
        exti__pe_broken(c, s->at + 16, s->name,
                        "section %s: 0x%x bytes at 0x%x in the file, not multiples of "
                        "FileAlignment 0x%x",
                        s->name, s->raw_size, s->raw_at, v->file_align);
    if ((uint64_t)s->raw_at + s->raw_size > v->file.n)
        exti__pe_broken(c, s->at + 16, s->name, "section %s: 0x%x bytes at 0x%x in a file of 0x%zx",
                        s->name, s->raw_size, s->raw_at, v->file.n);
}

int exti__pe_rule_raw(struct pe_check *c, const struct pe_view *v, struct exti_error *err)
{
    (void)err;
    for (size_t i = 0; i < v->section_count; i++)
        if (v->sections[i].raw_at && v->sections[i].raw_size) {
            check_raw(c, v, &v->sections[i]);
            check_overlap(c, v, i);
        }
    return 0;
}

/* ---- directories ----------------------------------------------------------------------------- */

static void check_directory_range(struct pe_check *c, const struct pe_view *v, size_t i)
{
    const uint32_t rva = v->directory[i].rva, size = v->directory[i].size;
    const uint64_t at = v->optional + (v->plus ? 112 : 96) + RVAS_AND_SIZES * i;
    struct exti_span s;
    char subject[24];

    snprintf(subject, sizeof subject, "%zu", i);
    if (i == IMAGE_DIRECTORY_ENTRY_SECURITY) {
        if (rva % 8 || (uint64_t)rva + size > v->file.n)
            exti__pe_broken(c, at, subject,
                            "directory 4: certificates, 0x%x bytes at 0x%x in a file of 0x%zx",
                            size, rva, v->file.n);
        return;
    }
    if (exti__pe_view_at(v, rva, size, &s) &&
        (exti__pe_view_section(v, rva) || i == IMAGE_DIRECTORY_ENTRY_BOUND_IMPORT))
        return;
    exti__pe_broken(c, at, subject,
                    "directory %zu: 0x%x bytes at 0x%x are not all in the file and in one section",
                    i, size, rva);
}

int exti__pe_rule_directories(struct pe_check *c, const struct pe_view *v, struct exti_error *err)
{
    (void)err;
    for (size_t i = 0; i < IMAGE_NUMBEROF_DIRECTORY_ENTRIES; i++)
        if (v->directory[i].rva && v->directory[i].size)
            check_directory_range(c, v, i);
    return 0;
}
