#include "elf/read/elf_shareable.h"

#include <string.h>

#include "base/checked.h"
#include "elf/read/elf_reloc.h"

/* The psABIs' relocations whose value a function of the library gives. */
static const struct {
    uint16_t machine;
    uint32_t type;
} resolved_types[] = {
    {EM_X86_64, 37},    /* R_X86_64_IRELATIVE */
    {EM_386, 42},       /* R_386_IRELATIVE */
    {EM_AARCH64, 1032}, /* R_AARCH64_IRELATIVE */
    {EM_ARM, 160},      /* R_ARM_IRELATIVE */
    {EM_RISCV, 58},     /* R_RISCV_IRELATIVE */
    {EM_PPC64, 248},    /* R_PPC64_IRELATIVE */
    {EM_S390, 61},      /* R_390_IRELATIVE */
};

struct resolver_search {
    uint32_t type;
    bool found;
};

static bool match_resolved(void *user, const struct elf_reloc *r)
{
    struct resolver_search *s = user;

    s->found = r->type == s->type;
    return !s->found;
}

static const uint32_t *resolved_type(const struct elf_file *f)
{
    for (size_t i = 0; i < sizeof resolved_types / sizeof *resolved_types; i++)
        if (resolved_types[i].machine == f->ehdr.e_machine)
            return &resolved_types[i].type;
    return NULL;
}

/* Whether loaders call functions of the library while they bind references, before anybody can have
 * mapped its code: its own references, or those of libraries that need it. */
static int has_resolvers(const struct elf_file *f, uint32_t type, bool *out, struct exti_error *err)
{
    struct resolver_search s = {.type = type};
    int rc;

    for (size_t i = 1; i < f->sym_count && !s.found; i++)
        s.found =
            f->sym[i].st_shndx != SHN_UNDEF && GELF_ST_TYPE(f->sym[i].st_info) == STT_GNU_IFUNC;
    rc = s.found ? 0 : exti__elf_each_reloc(f, match_resolved, &s, err);
    *out = s.found;
    return rc;
}

/* Whether another segment has a part of the same pages in memory. */
static bool shares_pages(const struct elf_file *f, const GElf_Phdr *segment, uint64_t page)
{
    const uint64_t at = segment->p_vaddr / page,
                   last = (segment->p_vaddr + segment->p_memsz - 1) / page;

    for (size_t i = 0; i < f->phnum; i++) {
        const GElf_Phdr *other = &f->phdr[i];

        if (other != segment && other->p_type == PT_LOAD && other->p_memsz &&
            other->p_vaddr / page <= last && (other->p_vaddr + other->p_memsz - 1) / page >= at)
            return true;
    }
    return false;
}

/* Whether the segment is in memory as it is in the file, as long as loaders write to none that they
 * are not allowed to. */
static bool is_constant(const GElf_Phdr *segment)
{
    return segment->p_type == PT_LOAD && (segment->p_flags & PF_R) && !(segment->p_flags & PF_W) &&
           segment->p_filesz && segment->p_filesz == segment->p_memsz;
}

/* Why the segment stays in the copy all the same; NULL if it need not.  What a context's copy has
 * of its own is in the headers and in tables that lie beside them. */
static const char *why_kept(const struct elf_file *f, const GElf_Phdr *segment)
{
    if (!segment->p_offset)
        return "its code lies in one segment with its headers (ld: -z separate-code)";
    if (shares_pages(f, segment, exti__elf_page_size(f)))
        return "its code lies in pages of memory with other segments (ld: -z separate-code)";
    return NULL;
}

/* Whether the bytes are all of a section of code or constants.  gdb reads .eh_frame from the file
 * to walk through functions without frame pointer, so that one stays. */
static bool is_hole(const struct elf_file *f, const struct exti_range *part)
{
    for (size_t i = 1; i < f->shnum; i++) {
        const GElf_Shdr *sh = &f->shdr[i];

        if (sh->sh_type == SHT_PROGBITS && sh->sh_offset == part->at && sh->sh_size == part->n)
            return strcmp(exti__elf_section_name(f, sh), ".eh_frame") != 0;
    }
    return false;
}

/* To the end of the segment's last page, or to where the file has the next one. */
static size_t own_size(const struct elf_file *f, const GElf_Phdr *segment)
{
    const uint64_t page = exti__elf_page_size(f), to = segment->p_offset + segment->p_filesz;
    uint64_t end = (to + page - 1) / page * page;

    for (size_t i = 0; i < f->phnum; i++)
        if (f->phdr[i].p_type == PT_LOAD && f->phdr[i].p_filesz && f->phdr[i].p_offset >= to &&
            f->phdr[i].p_offset < end)
            end = f->phdr[i].p_offset;
    return (size_t)(end - segment->p_offset);
}

static void find_holes(const struct elf_file *f, const struct exti_range *segment,
                       struct exti_unread *out)
{
    out->count = 0;
    for (size_t i = 0; i < f->unread.count; i++) {
        const struct exti_range *part = &f->unread.part[i];

        if (part->at >= segment->at && part->at + part->n <= segment->at + segment->n &&
            is_hole(f, part))
            out->part[out->count++] = *part;
    }
}

/* Adds the segment with its holes, if it has any and need not stay. */
static void add_segment(const struct elf_file *f, const GElf_Phdr *segment,
                        struct exti_shareable *out)
{
    const struct exti_range r = {(size_t)segment->p_offset, (size_t)segment->p_filesz};
    const char *why = why_kept(f, segment);
    struct exti_unread holes;

    find_holes(f, &r, &holes);
    if (holes.count && why)
        out->none = why;
    if (!holes.count || why)
        return;
    out->own[out->count] = own_size(f, segment);
    out->segments[out->count++] = r;
    for (size_t i = 0; i < holes.count; i++)
        out->holes.part[out->holes.count++] = holes.part[i];
}

/* Segments come in the order of their addresses (elf_open.c), which need not be that of offsets. */
static void find_segments(const struct elf_file *f, struct exti_shareable *out)
{
    size_t end = 0;

    for (size_t i = 0; i < f->phnum && out->count < EXTI_SHARED_MAX; i++) {
        const GElf_Phdr *segment = &f->phdr[i];

        if (!is_constant(segment) || segment->p_offset < end)
            continue;
        add_segment(f, segment, out);
        end = (size_t)(segment->p_offset + segment->p_filesz);
    }
    if (out->count)
        out->none = NULL;
    else if (!out->none)
        out->none = "no section of code or constants is large enough";
}

int exti__elf_shareable(const struct elf_file *f, bool text_relocations, struct exti_shareable *out,
                        struct exti_error *err)
{
    const uint32_t *type = resolved_type(f);
    bool resolvers = false;
    int rc;

    *out = (struct exti_shareable){.none = NULL};
    if (!type) {
        out->none = "which of its machine's relocations call functions is not known here";
        return 0;
    }
    if (text_relocations) {
        out->none = "loaders write to its code (DT_TEXTREL)";
        return 0;
    }
    rc = has_resolvers(f, *type, &resolvers, err);
    if (rc)
        return rc;
    out->early = resolvers;
    if (resolvers) {
        out->none = "loaders call functions of it to bind references (STT_GNU_IFUNC)";
        return 0;
    }
    find_segments(f, out);
    return 0;
}
