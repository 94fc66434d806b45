/* A rewrite appends one PT_LOAD that has nothing but moved tables.  The next rewrite of such a copy
 * lays that block out anew and lets it grow, or else each would need one more program header and
 * leave the tables of the one before behind.
 *
 * The file does not say who wrote it, so the block is known by its contents: it ends the file, and
 * each of its bytes belongs to a table that a rewrite can move.  Whoever made such a block, nothing
 * refers to it but those tables' tags and sections; and PT_DYNAMIC, which code may refer to, comes
 * first and so keeps its address. */
#include "elf/edit/elf_block.h"

#include "base/checked.h"

bool exti__elf_in_block(const GElf_Phdr *block, const struct elf_move *m)
{
    return m->room && m->vaddr >= block->p_vaddr && m->vaddr - block->p_vaddr < block->p_filesz;
}

static bool is_last_part(const struct elf_file *f, const GElf_Phdr *ph)
{
    uint64_t end;

    return ph->p_filesz && ph->p_filesz == ph->p_memsz && !(ph->p_flags & PF_X) &&
           ph->p_flags & PF_R && ph->p_align >= exti__elf_page_size(f) && ph->p_offset % 16 == 0 &&
           ph->p_vaddr % 16 == 0 && exti__add(ph->p_offset, ph->p_filesz, &end) && end == f->file.n;
}

/* Whether the tables fill the block as a rewrite lays them out. */
static bool is_full_of_tables(const struct elf_edit *e, const GElf_Phdr *block)
{
    const struct exti_span file = e->f->file;
    uint64_t at = block->p_offset;

    for (size_t i = 0; i < ELF_MOVE_COUNT; i++) {
        const struct elf_move *m = &e->move[i];
        uint64_t start;

        if (!exti__elf_in_block(block, m))
            continue;
        if (!exti__align(at, m->align, &start) || m->offset != start || start >= file.n ||
            m->vaddr - block->p_vaddr != start - block->p_offset)
            return false;
        for (; at < start; at++)
            if (file.p[at])
                return false;
        at = exti__elf_end(start, m->room);
    }
    return at == exti__elf_end(block->p_offset, block->p_filesz);
}

static bool has_other_headers(const struct elf_file *f, size_t index)
{
    const GElf_Phdr *block = &f->phdr[index];
    const uint64_t from = block->p_vaddr, to = from + block->p_memsz;

    for (size_t i = 0; i < f->phnum; i++) {
        const GElf_Phdr *ph = &f->phdr[i];

        if (i != index && i != f->dynamic_phdr && ph->p_type != PT_NULL &&
            (exti__elf_overlap(from, to, ph->p_vaddr, exti__elf_end(ph->p_vaddr, ph->p_memsz)) ||
             exti__elf_overlap(block->p_offset, f->file.n, ph->p_offset,
                               exti__elf_end(ph->p_offset, ph->p_filesz))))
            return true;
    }
    return false;
}

/* Whether `sh` is the header of a table in the block.  When that moves, the header follows. */
static bool is_section_of(const struct elf_edit *e, const GElf_Shdr *sh)
{
    static const uint32_t type[ELF_MOVE_COUNT] = {SHT_DYNAMIC, SHT_GNU_HASH, SHT_HASH, SHT_STRTAB};

    for (size_t i = 0; i < ELF_MOVE_COUNT; i++)
        if (sh->sh_type == type[i] && sh->sh_flags & SHF_ALLOC && sh->sh_addr == e->move[i].vaddr &&
            sh->sh_offset == e->move[i].offset && sh->sh_size == e->move[i].room)
            return true;
    return false;
}

static bool has_other_sections(const struct elf_edit *e, const GElf_Phdr *block)
{
    const struct elf_file *f = e->f;

    for (size_t i = 0; i < f->shnum; i++) {
        const GElf_Shdr *sh = &f->shdr[i];

        if (sh->sh_type != SHT_NULL && sh->sh_type != SHT_NOBITS && sh->sh_size &&
            exti__elf_overlap(block->p_offset, f->file.n, sh->sh_offset,
                              exti__elf_end(sh->sh_offset, sh->sh_size)) &&
            !is_section_of(e, sh))
            return true;
    }
    return exti__elf_overlap(block->p_offset, f->file.n, f->ehdr.e_shoff,
                             exti__elf_end(f->ehdr.e_shoff, f->shnum * exti__elf_shdr_size(f)));
}

/* Whether a tag or a dynamic symbol refers to the block otherwise than to a table that can move. */
static bool has_other_references(const struct elf_edit *e, const GElf_Phdr *block)
{
    const struct elf_file *f = e->f;

    for (size_t i = 0; i < f->dyn_count; i++) {
        const GElf_Dyn *d = &f->dyn[i];

        if (exti__elf_tag_is_pointer(d->d_tag) && d->d_tag != DT_STRTAB && d->d_tag != DT_HASH &&
            d->d_tag != DT_GNU_HASH && d->d_un.d_ptr >= block->p_vaddr &&
            d->d_un.d_ptr - block->p_vaddr < block->p_memsz)
            return true;
    }
    for (size_t i = 1; i < f->sym_count; i++)
        if (f->sym[i].st_shndx != SHN_UNDEF && f->sym[i].st_value >= block->p_vaddr &&
            f->sym[i].st_value - block->p_vaddr < block->p_memsz)
            return true;
    return false;
}

size_t exti__elf_find_block(const struct elf_edit *e)
{
    const struct elf_file *f = e->f;
    size_t last = f->phnum;

    while (last > 0 && f->phdr[last - 1].p_type != PT_LOAD)
        last--;
    if (last < 2) /* the first one has the ELF header */
        return SIZE_MAX;
    last--;
    if (!is_last_part(f, &f->phdr[last]) || !is_full_of_tables(e, &f->phdr[last]) ||
        has_other_headers(f, last) || has_other_sections(e, &f->phdr[last]) ||
        has_other_references(e, &f->phdr[last]))
        return SIZE_MAX;
    return last;
}
