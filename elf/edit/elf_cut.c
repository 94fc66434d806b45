#include "elf/edit/elf_cut.h"

#include <stddef.h>
#include <string.h>

#include "elf/edit/elf_encode.h"
#include "elf/read/elf_left_data.h"

/* The new header of the segment whose file part ends with the data; SIZE_MAX if it is another. */
static size_t find_header(const struct elf_edit *e, const struct exti_range *left)
{
    for (size_t i = 0; i < e->phnum; i++) {
        const GElf_Phdr *ph = &e->phdr[i];

        if (ph->p_type == PT_LOAD && ph->p_offset <= left->at &&
            exti__elf_end(ph->p_offset, ph->p_filesz) == left->at + left->n)
            return i;
    }
    return SIZE_MAX;
}

int exti__elf_cut_data(struct elf_edit *e, struct exti_error *err)
{
    struct exti_cut *cut = &e->plan->cuts[e->plan->cut_count];
    struct exti_range left;
    size_t header;
    int rc = exti__elf_left_data(e->f, &left, err);

    if (rc || !left.n || exti__plan_edits(e->plan, left.at, left.n))
        return rc;
    header = find_header(e, &left);
    if (header == SIZE_MAX)
        return 0;
    *cut = (struct exti_cut){.left = left, .n = e->f->is64 ? 8 : 4, .loaded = true};
    cut->at = e->f->ehdr.e_phoff + header * exti__elf_phdr_size(e->f) +
              (e->f->is64 ? offsetof(Elf64_Phdr, p_filesz) : offsetof(Elf32_Phdr, p_filesz));
    exti__elf_put_addr(e->f, cut->bytes, left.at - e->phdr[header].p_offset);
    e->plan->cut_count++;
    return 0;
}

/* ---- debug sections ---- */

/* gdb walks by .debug_frame through functions that .eh_frame does not have, so that stays as well:
 * see elf/read/elf_shareable.c. */
static bool is_debug(const struct elf_file *f, const GElf_Shdr *sh)
{
    const char *name = exti__elf_section_name(f, sh);

    return sh->sh_type == SHT_PROGBITS && !(sh->sh_flags & SHF_ALLOC) &&
           (strncmp(name, ".debug_", 7) == 0 || strncmp(name, ".zdebug_", 8) == 0 ||
            strcmp(name, ".gdb_index") == 0) &&
           strcmp(name, ".debug_frame") != 0 && strcmp(name, ".zdebug_frame") != 0;
}

/* Whether other sections are nothing without that one, as its relocations (ld --emit-relocs). */
static bool is_needed(const struct elf_file *f, size_t section)
{
    if (section == f->ehdr.e_shstrndx)
        return true;
    for (size_t i = 1; i < f->shnum; i++) {
        const GElf_Shdr *sh = &f->shdr[i];

        if (sh->sh_link == section ||
            ((sh->sh_type == SHT_REL || sh->sh_type == SHT_RELA) && sh->sh_info == section))
            return true;
    }
    return false;
}

static bool is_in_segment(const struct elf_file *f, const struct exti_range *part)
{
    for (size_t i = 0; i < f->phnum; i++) {
        const GElf_Phdr *ph = &f->phdr[i];

        if (ph->p_type == PT_LOAD && ph->p_offset < part->at + part->n &&
            part->at < exti__elf_end(ph->p_offset, ph->p_filesz))
            return true;
    }
    return false;
}

/* The section's bytes, if nobody reads them, and nobody loads them. */
static struct exti_range unread_bytes(const struct elf_file *f, const GElf_Shdr *sh)
{
    for (size_t i = 0; i < f->unread.count; i++) {
        const struct exti_range *part = &f->unread.part[i];

        if (part->at == sh->sh_offset && part->n == sh->sh_size && !is_in_segment(f, part))
            return *part;
    }
    return (struct exti_range){0, 0};
}

/* Whether the result has the section headers where the input has them, and that one unchanged. */
static bool keeps_header(const struct elf_edit *e, size_t i)
{
    const struct elf_file *f = e->f;

    return memcmp(&e->shdr[i], &f->shdr[i], sizeof *f->shdr) == 0 &&
           (!e->plan->tail.n ||
            e->plan->tail_offset >= f->ehdr.e_shoff + f->shnum * exti__elf_shdr_size(f));
}

/* The result has inactive headers instead (gABI, "Sections": SHT_NULL), which are zeros.  One
 * section without the others would be broken to debuggers: all or none. */
void exti__elf_cut_debug(struct elf_edit *e)
{
    const struct elf_file *f = e->f;
    struct exti_plan *plan = e->plan;
    const size_t before = plan->cut_count, size = exti__elf_shdr_size(f);
    bool any = false;

    for (size_t i = 1; i < f->shnum; i++) {
        struct exti_cut cut = {.left = unread_bytes(f, &f->shdr[i]), .n = size};

        if (!is_debug(f, &f->shdr[i]))
            continue;
        if (plan->cut_count == EXTI_CUTS_MAX || !keeps_header(e, i) || is_needed(f, i)) {
            any = false;
            break;
        }
        cut.at = f->ehdr.e_shoff + i * size;
        plan->cuts[plan->cut_count++] = cut;
        any = any || cut.left.n;
    }
    if (!any)
        plan->cut_count = before;
}
