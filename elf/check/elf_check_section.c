/* Only the headers of moved tables and notes may differ from the original's. */
#include "elf/check/elf_check_section.h"

#include <inttypes.h>
#include <string.h>

#include "elf/check/elf_check_hash.h"

/* The distance by which a note section moved with its program header. */
static uint64_t note_delta(const struct elf_check *c, const GElf_Shdr *sh)
{
    for (size_t j = 0; j < c->after.phnum; j++) {
        const GElf_Phdr *a = &c->after.phdr[j], *b = exti__elf_original(c, j);

        if (!b || a->p_type == PT_LOAD || a->p_type == PT_DYNAMIC)
            continue;
        if (a->p_offset != b->p_offset && sh->sh_offset >= b->p_offset &&
            sh->sh_offset - b->p_offset < b->p_filesz)
            return a->p_offset - b->p_offset;
    }
    return 0;
}

/* Whether `sh` is the section of the table `part`.  An empty section at its address is not. */
static bool is_part(const GElf_Shdr *sh, uint32_t type, const struct elf_part *part)
{
    return sh->sh_type == type && sh->sh_flags & SHF_ALLOC && sh->sh_size && part->present &&
           sh->sh_addr == part->vaddr;
}

static bool is_dynamic(const struct elf_file *f, const GElf_Shdr *sh)
{
    return sh->sh_type == SHT_DYNAMIC && sh->sh_flags & SHF_ALLOC && sh->sh_size &&
           sh->sh_addr == f->phdr[f->dynamic_phdr].p_vaddr;
}

uint64_t exti__elf_section_moved(const struct elf_check *c, size_t i)
{
    const struct elf_file *b = &c->before, *a = &c->after;
    const GElf_Shdr *sh = &b->shdr[i];

    if (is_dynamic(b, sh))
        return a->phdr[a->dynamic_phdr].p_vaddr;
    if (is_part(sh, SHT_STRTAB, &b->strtab))
        return a->strtab.vaddr;
    if (is_part(sh, SHT_HASH, &b->hash))
        return a->hash.vaddr;
    if (is_part(sh, SHT_GNU_HASH, &b->gnu_hash))
        return a->gnu_hash.vaddr;
    if (sh->sh_type == SHT_NOTE && sh->sh_flags & SHF_ALLOC)
        return sh->sh_addr + note_delta(c, sh);
    return sh->sh_addr;
}

/* The size in `f` of the table that section `sh` of the original holds; 0 where it is not known. */
static uint64_t true_size(const struct elf_file *f, const struct elf_file *before,
                          const GElf_Shdr *sh)
{
    if (is_dynamic(before, sh))
        return f->phdr[f->dynamic_phdr].p_filesz;
    if (is_part(sh, SHT_STRTAB, &before->strtab))
        return f->strtab.s.n;
    if (is_part(sh, SHT_GNU_HASH, &before->gnu_hash))
        return exti__elf_gnu_hash_size(f);
    if (is_part(sh, SHT_HASH, &before->hash))
        return exti__elf_sysv_hash_size(f);
    return 0;
}

/* The header that section `i` must have in the copy.  When a table moves, its header gets the right
 * size even if the original's was wrong. */
static GElf_Shdr expected_section(const struct elf_check *c, size_t i)
{
    const struct elf_file *b = &c->before, *a = &c->after;
    const GElf_Shdr *old = &b->shdr[i];
    const uint64_t was = true_size(b, b, old), size = true_size(a, b, old);
    GElf_Shdr sh = *old;
    struct exti_span s;

    sh.sh_addr = exti__elf_section_moved(c, i);
    if (sh.sh_addr != old->sh_addr && !exti__elf_bytes_from(a, sh.sh_addr, "", &s, NULL))
        sh.sh_offset = s.base;
    if (size && (sh.sh_addr != old->sh_addr || sh.sh_size == was))
        sh.sh_size = size;
    return sh;
}

static void compare_section(struct elf_check *c, size_t i)
{
    const GElf_Shdr want = expected_section(c, i), *have = &c->after.shdr[i];
    const uint64_t at = c->after.ehdr.e_shoff + i * exti__elf_shdr_size(&c->after);

    if (have->sh_addr != want.sh_addr || have->sh_offset != want.sh_offset ||
        have->sh_size != want.sh_size)
        exti__elf_finding(c, at,
                          "section header %zu: address 0x%" PRIx64 ", offset 0x%" PRIx64
                          ", size 0x%" PRIx64 ", not 0x%" PRIx64 ", 0x%" PRIx64 ", 0x%" PRIx64,
                          i, have->sh_addr, have->sh_offset, have->sh_size, want.sh_addr,
                          want.sh_offset, want.sh_size);
    if (have->sh_name != want.sh_name || have->sh_type != want.sh_type ||
        have->sh_flags != want.sh_flags || have->sh_link != want.sh_link ||
        have->sh_info != want.sh_info || have->sh_addralign != want.sh_addralign ||
        have->sh_entsize != want.sh_entsize)
        exti__elf_finding(c, at,
                          "section header %zu: name 0x%x, type 0x%x, flags 0x%" PRIx64
                          ", link %u, info %u, not 0x%x, 0x%x, 0x%" PRIx64 ", %u, %u",
                          i, have->sh_name, have->sh_type, have->sh_flags, have->sh_link,
                          have->sh_info, want.sh_name, want.sh_type, want.sh_flags, want.sh_link,
                          want.sh_info);
}

/* Readers that go by section headers must find the loader's PT_DYNAMIC and its strings: they follow
 * SHT_DYNAMIC's sh_link to the strings, as eu-elflint does. */
static void check_dynamic_sections(struct elf_check *c)
{
    const struct elf_file *a = &c->after;
    const GElf_Phdr *ph = &a->phdr[a->dynamic_phdr];

    for (size_t i = 0; i < a->shnum; i++) {
        const GElf_Shdr *sh = &a->shdr[i];

        if (sh->sh_type != SHT_DYNAMIC || !(sh->sh_flags & SHF_ALLOC))
            continue;
        if (sh->sh_addr != ph->p_vaddr || sh->sh_offset != ph->p_offset)
            exti__elf_finding(c, a->ehdr.e_shoff + i * exti__elf_shdr_size(a),
                              "section header %zu: the dynamic section at 0x%" PRIx64
                              ", not at PT_DYNAMIC's 0x%" PRIx64,
                              i, sh->sh_addr, ph->p_vaddr);
        if (sh->sh_link >= a->shnum || a->shdr[sh->sh_link].sh_type != SHT_STRTAB)
            continue;
        sh = &a->shdr[sh->sh_link];
        if (sh->sh_addr != a->strtab.vaddr || sh->sh_offset != a->strtab.s.base)
            exti__elf_finding(c, a->ehdr.e_shoff + (size_t)(sh - a->shdr) * exti__elf_shdr_size(a),
                              "section header %zu: the dynamic section's strings at 0x%" PRIx64
                              ", not at DT_STRTAB's 0x%" PRIx64,
                              (size_t)(sh - a->shdr), sh->sh_addr, a->strtab.vaddr);
    }
}

int exti__elf_check_sections(struct elf_check *c, struct exti_error *err)
{
    (void)err;
    /* No tool can read a truncated table.  In a longer copy it may look complete again. */
    if (!c->before.shdr)
        return 0;
    if (c->after.shnum != c->before.shnum) {
        exti__elf_finding(c, c->after.ehdr.e_shoff, "section header table: %zu entries, not %zu",
                          c->after.shnum, c->before.shnum);
        return 0;
    }
    for (size_t i = 0; i < c->before.shnum && !c->findings.stop; i++)
        compare_section(c, i);
    check_dynamic_sections(c);
    return 0;
}
