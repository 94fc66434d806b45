/* Structures that must move go into the block that an earlier rewrite put behind the file, or else
 * into the unused end of a segment, or into a new segment behind the file.  The program header
 * table never moves, because strip and similar tools would break such a file; a segment with .bss
 * never grows; nothing else changes its place. */
#include "elf/edit/elf_place.h"

#include <inttypes.h>

#include "base/checked.h"
#include "base/error.h"
#include "elf/edit/elf_block.h"
#include "elf/edit/elf_slot.h"

/* Whether any known structure uses file bytes in [from, to). */
static bool in_use(const struct elf_edit *e, uint64_t from, uint64_t to)
{
    const struct elf_file *f = e->f;
    const uint64_t phoff = f->ehdr.e_phoff, shoff = f->ehdr.e_shoff;

    if (exti__elf_overlap(from, to, phoff, phoff + f->phnum * exti__elf_phdr_size(f)) ||
        exti__elf_overlap(from, to, shoff, shoff + f->shnum * exti__elf_shdr_size(f)))
        return true;
    for (size_t i = 0; i < f->phnum; i++) {
        uint64_t end;

        if (!exti__add(f->phdr[i].p_offset, f->phdr[i].p_filesz, &end) ||
            exti__elf_overlap(from, to, f->phdr[i].p_offset, end))
            return true;
    }
    for (size_t i = 0; i < f->shnum; i++) {
        const GElf_Shdr *sh = &f->shdr[i];
        uint64_t end;

        if (sh->sh_type == SHT_NOBITS || sh->sh_type == SHT_NULL)
            continue;
        if (!exti__add(sh->sh_offset, sh->sh_size, &end) ||
            exti__elf_overlap(from, to, sh->sh_offset, end))
            return true;
    }
    for (uint64_t i = from; i < to; i++)
        if (f->file.p[i])
            return true;
    return false;
}

/* The number of unused bytes behind PT_LOAD `i`: up to the next one's first page in memory and in
 * the file. */
static uint64_t segment_slack(const struct elf_file *f, size_t i)
{
    const GElf_Phdr *ph = &f->phdr[i];
    const uint64_t mask = ~(exti__elf_page_size(f) - 1);
    uint64_t vaddr = ph->p_vaddr + ph->p_memsz, offset = ph->p_offset + ph->p_filesz;
    uint64_t to_vaddr = 0, to_offset = f->file.n;

    for (size_t k = 0; k < f->phnum; k++) {
        const GElf_Phdr *next = &f->phdr[k];

        if (next->p_type != PT_LOAD || k == i)
            continue;
        if (k > i && !to_vaddr)
            to_vaddr = next->p_vaddr & mask;
        /* A segment that shares this one's last page in the file would map the new bytes too. */
        if (next->p_filesz && next->p_offset + next->p_filesz > offset &&
            (next->p_offset & mask) < to_offset)
            to_offset = next->p_offset & mask;
    }
    if (to_vaddr <= vaddr || to_offset <= offset)
        return 0;
    return to_vaddr - vaddr < to_offset - offset ? to_vaddr - vaddr : to_offset - offset;
}

/* Assigns places to the moving structures from `offset` in the file and `vaddr` in memory on, which
 * must be congruent modulo every alignment.  *end is the end in the file. */
static bool assign_places(struct elf_edit *e, uint64_t vaddr, uint64_t offset, uint64_t *end)
{
    bool fits = true;

    *end = offset;
    for (size_t i = 0; fits && i < ELF_MOVE_COUNT; i++) {
        struct elf_move *m = &e->move[i];

        if (!m->moves)
            continue;
        fits = exti__align(*end, m->align, &m->to_offset) && exti__add(m->to_offset, m->size, end);
        m->to_vaddr = m->to_offset + (vaddr - offset);
    }
    return fits;
}

/* Places the structures in the slack behind segment `i` and lets it grow, if they fit. */
static bool grow_into_slack(struct elf_edit *e, size_t i)
{
    GElf_Phdr *ph = &e->phdr[i];
    const uint64_t offset = ph->p_offset + ph->p_filesz, vaddr = ph->p_vaddr + ph->p_memsz;
    uint64_t room, end;

    if (ph->p_type != PT_LOAD || ph->p_flags & PF_W || ph->p_filesz != ph->p_memsz || !ph->p_filesz)
        return false;
    /* An aligned offset must have an aligned address. */
    if ((vaddr - offset) % exti__elf_page_size(e->f))
        return false;
    room = segment_slack(e->f, i);
    if (!room || !assign_places(e, vaddr, offset, &end) || end - offset > room ||
        in_use(e, offset, end))
        return false;
    ph->p_filesz += end - offset;
    ph->p_memsz += end - offset;
    return true;
}

/* Prefers a segment that is only readable.  Otherwise takes one with the flags of the string
 * table's segment, even if that has code. */
static bool place_in_segment(struct elf_edit *e)
{
    uint32_t flags = PF_R;

    if (e->move[ELF_MOVE_DYNAMIC].moves)
        return false;
    for (size_t i = 0; i < e->phnum; i++)
        if (e->phdr[i].p_flags == PF_R && grow_into_slack(e, i))
            return true;
    for (size_t i = 0; i < e->phnum; i++)
        if (e->phdr[i].p_type == PT_LOAD && e->f->strtab.vaddr >= e->phdr[i].p_vaddr &&
            e->f->strtab.vaddr - e->phdr[i].p_vaddr < e->phdr[i].p_filesz)
            flags = e->phdr[i].p_flags;
    for (size_t i = 0; i < e->phnum; i++)
        if (e->phdr[i].p_flags == flags && grow_into_slack(e, i))
            return true;
    return false;
}

/* Makes a PT_LOAD behind everything, in memory and in the file.  Its address is congruent to its
 * offset modulo its alignment, so the file needs no padding. */
static int place_behind(struct elf_edit *e, struct exti_error *err)
{
    const struct elf_file *f = e->f;
    uint64_t align = 0, offset, end = 0, vaddr, tail;
    GElf_Phdr load = {.p_type = PT_LOAD, .p_flags = PF_R};
    size_t slot;
    int rc = exti__elf_add_phdr_slot(e, &slot, err);

    if (rc)
        return rc;
    for (size_t i = 0; i < f->phnum; i++) {
        if (f->phdr[i].p_type != PT_LOAD)
            continue;
        if (!align || f->phdr[i].p_align < align)
            align = f->phdr[i].p_align;
        end = f->phdr[i].p_vaddr + f->phdr[i].p_memsz;
    }
    if (align < exti__elf_page_size(f))
        align = exti__elf_page_size(f);
    if (e->move[ELF_MOVE_DYNAMIC].moves)
        load.p_flags |= f->phdr[f->dynamic_phdr].p_flags & PF_W;
    if (!exti__align(f->file.n, 16, &offset) || !exti__align(end, align, &vaddr) ||
        !exti__add(vaddr, offset & (align - 1), &vaddr) ||
        !assign_places(e, vaddr, offset, &tail) || !exti__add(vaddr, tail - offset, &end) ||
        (!f->is64 && (end > UINT32_MAX || tail > UINT32_MAX)))
        return exti__fail(
            err, EXTI_E_NOSPACE, f->ehdr.e_phoff,
            "PT_LOAD: no address space left behind the last one, which ends at 0x%" PRIx64, end);
    load.p_offset = offset;
    load.p_vaddr = load.p_paddr = vaddr;
    load.p_filesz = load.p_memsz = tail - offset;
    load.p_align = align;
    e->phdr[slot] = load;
    return 0;
}

/* Lays out the block of an earlier rewrite anew, with what must move now.  It keeps its place in
 * memory and in the file, which it ends, and so may grow. */
static int place_in_block(struct elf_edit *e, size_t index, struct exti_error *err)
{
    const struct elf_file *f = e->f;
    GElf_Phdr load = f->phdr[index];
    uint64_t tail, end;

    for (size_t i = 0; i < ELF_MOVE_COUNT; i++)
        e->move[i].moves |= exti__elf_in_block(&f->phdr[index], &e->move[i]);
    if (!assign_places(e, load.p_vaddr, load.p_offset, &tail) ||
        !exti__add(load.p_vaddr, tail - load.p_offset, &end) ||
        (!f->is64 && (end > UINT32_MAX || tail > UINT32_MAX)))
        return exti__fail(err, EXTI_E_NOSPACE, f->ehdr.e_phoff + index * exti__elf_phdr_size(f),
                          "PT_LOAD: no address space left behind the one at 0x%" PRIx64,
                          load.p_vaddr);
    if (e->move[ELF_MOVE_DYNAMIC].moves)
        load.p_flags |= f->phdr[f->dynamic_phdr].p_flags & PF_W;
    load.p_filesz = load.p_memsz = tail - load.p_offset;
    e->tail_at = load.p_offset;
    e->phdr[exti__elf_replace_phdr(e, index)] = load;
    return 0;
}

static void move_sections(struct elf_edit *e)
{
    static const uint32_t type[ELF_MOVE_COUNT] = {SHT_DYNAMIC, SHT_GNU_HASH, SHT_HASH, SHT_STRTAB};

    for (size_t i = 0; i < e->f->shnum; i++)
        for (size_t k = 0; k < ELF_MOVE_COUNT; k++) {
            const GElf_Shdr *sh = &e->f->shdr[i];
            const struct elf_move *m = &e->move[k];

            if (!m->moves || sh->sh_type != type[k] || !(sh->sh_flags & SHF_ALLOC) ||
                sh->sh_addr != m->vaddr || !sh->sh_size)
                continue;
            e->shdr[i].sh_addr = m->to_vaddr;
            e->shdr[i].sh_offset = m->to_offset;
            e->shdr[i].sh_size = m->size;
        }
}

static void move_segments(struct elf_edit *e)
{
    const struct elf_move *m = &e->move[ELF_MOVE_DYNAMIC];

    for (size_t i = 0; m->moves && i < e->phnum; i++) {
        GElf_Phdr *ph = &e->phdr[i];

        if (ph->p_type != PT_DYNAMIC)
            continue;
        ph->p_offset = m->to_offset;
        ph->p_vaddr = ph->p_paddr = m->to_vaddr;
        ph->p_filesz = ph->p_memsz = m->size;
    }
}

int exti__elf_place(struct elf_edit *e, struct exti_error *err)
{
    const size_t block = exti__elf_find_block(e);
    bool any = false;
    int rc = 0;

    for (size_t i = 0; i < ELF_MOVE_COUNT; i++)
        any |= e->move[i].moves;
    if (!any)
        return 0;
    if (block != SIZE_MAX)
        rc = place_in_block(e, block, err);
    else if (!place_in_segment(e))
        rc = place_behind(e, err);
    if (rc)
        return rc;
    move_sections(e);
    move_segments(e);
    return 0;
}
