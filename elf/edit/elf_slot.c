/* The program header table stays where it is, so a new entry takes the place of another one or of
 * the bytes behind the table. */
#include "elf/edit/elf_slot.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"

enum { NONE = -1 };

static bool has_segment(const struct elf_file *f, uint32_t type)
{
    for (size_t i = 0; i < f->phnum; i++)
        if (f->phdr[i].p_type == type)
            return true;
    return false;
}

/* The PT_LOAD whose file part holds [from, to), or NULL. */
static const GElf_Phdr *load_of(const struct elf_file *f, uint64_t from, uint64_t to)
{
    for (size_t i = 0; i < f->phnum; i++) {
        const GElf_Phdr *ph = &f->phdr[i];

        if (ph->p_type == PT_LOAD && from >= ph->p_offset && to <= ph->p_offset + ph->p_filesz)
            return ph;
    }
    return NULL;
}

static uint64_t phdr_table_end(const struct elf_file *f)
{
    return f->ehdr.e_phoff + f->phnum * exti__elf_phdr_size(f);
}

/* Finds an entry that loaders do not need: PT_NULL; a PT_NOTE that repeats a PT_GNU_PROPERTY, which
 * glibc prefers; or PT_PHDR, which only programs need as long as a PT_LOAD maps the table. */
static int spare_entry(const struct elf_file *f)
{
    for (size_t i = 0; i < f->phnum; i++)
        if (f->phdr[i].p_type == PT_NULL)
            return (int)i;
    for (size_t i = 0; i < f->phnum; i++)
        for (size_t k = 0; f->phdr[i].p_type == PT_NOTE && k < f->phnum; k++)
            if (f->phdr[k].p_type == PT_GNU_PROPERTY &&
                f->phdr[k].p_offset == f->phdr[i].p_offset &&
                f->phdr[k].p_filesz == f->phdr[i].p_filesz)
                return (int)i;
    for (size_t i = 0; i < f->phnum; i++)
        if (f->phdr[i].p_type == PT_PHDR && !has_segment(f, PT_INTERP) &&
            load_of(f, f->ehdr.e_phoff, phdr_table_end(f)))
            return (int)i;
    return NONE;
}

static bool is_hash_section(const struct elf_edit *e, const GElf_Shdr *sh)
{
    return (sh->sh_type == SHT_GNU_HASH && sh->sh_addr == e->move[ELF_MOVE_GNU_HASH].vaddr) ||
           (sh->sh_type == SHT_HASH && sh->sh_addr == e->move[ELF_MOVE_HASH].vaddr);
}

/* Whether the file's [from, to) holds a known structure other than notes and hash tables. */
static bool has_others(const struct elf_edit *e, uint64_t from, uint64_t to)
{
    const struct elf_file *f = e->f;
    const GElf_Phdr *load = load_of(f, from, to);
    uint64_t vaddr, end;

    if (!load)
        return true;
    vaddr = load->p_vaddr + (from - load->p_offset);
    end = vaddr + (to - from);
    for (size_t i = 0; i < f->phnum; i++) {
        const GElf_Phdr *ph = &f->phdr[i];

        if (ph == load || ph->p_type == PT_NOTE || ph->p_type == PT_GNU_PROPERTY || !ph->p_filesz)
            continue;
        if (ph->p_type == PT_LOAD
                ? exti__elf_overlap(from, to, ph->p_offset, ph->p_offset + ph->p_filesz)
                : exti__elf_overlap(vaddr, end, ph->p_vaddr,
                                    exti__elf_end(ph->p_vaddr, ph->p_memsz)))
            return true;
    }
    for (size_t i = 0; i < f->shnum; i++) {
        const GElf_Shdr *sh = &f->shdr[i];

        if (sh->sh_type == SHT_NOTE || sh->sh_type == SHT_NOBITS || sh->sh_type == SHT_NULL ||
            is_hash_section(e, sh))
            continue;
        if (sh->sh_offset < to && (sh->sh_offset >= from || sh->sh_size > from - sh->sh_offset))
            return true;
    }
    for (size_t i = 0; i < f->dyn_count; i++) {
        const GElf_Dyn *d = &f->dyn[i];

        if (exti__elf_tag_is_pointer(d->d_tag) && d->d_tag != DT_HASH && d->d_tag != DT_GNU_HASH &&
            d->d_un.d_ptr >= vaddr && d->d_un.d_ptr < end)
            return true;
    }
    for (size_t i = 1; i < f->sym_count; i++)
        if (f->sym[i].st_shndx != SHN_UNDEF && f->sym[i].st_value >= vaddr &&
            f->sym[i].st_value < end)
            return true;
    return exti__elf_overlap(from, to, f->symtab.s.base, f->symtab.s.base + f->symtab.s.n) ||
           exti__elf_overlap(from, to, f->strtab.s.base, f->strtab.s.base + f->strtab.s.n);
}

static bool is_filled(struct exti_span s, uint8_t with)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] != with)
            return false;
    return true;
}

/* Whether the bytes behind the table are unused: no structure is known there, and they are zeros or
 * the filler ('Z', 'X') that patchelf leaves where it moved something away. */
static bool has_gap_behind(const struct elf_edit *e)
{
    const struct elf_file *f = e->f;
    const uint64_t from = phdr_table_end(f), to = from + exti__elf_phdr_size(f);
    struct exti_span s;

    if (!f->shnum || has_others(e, from, to) ||
        exti__span_sub(f->file, from, to - from, "", &s, NULL))
        return false;
    for (size_t i = 0; i < f->phnum; i++)
        if (f->phdr[i].p_type == PT_NOTE &&
            exti__elf_overlap(from, to, f->phdr[i].p_offset,
                              exti__elf_end(f->phdr[i].p_offset, f->phdr[i].p_filesz)))
            return false;
    for (size_t i = 0; i < f->shnum; i++)
        if (f->shdr[i].sh_type != SHT_NOBITS && f->shdr[i].sh_type != SHT_NULL &&
            f->shdr[i].sh_offset < to && f->shdr[i].sh_offset >= from)
            return false;
    for (size_t i = ELF_MOVE_GNU_HASH; i <= ELF_MOVE_HASH; i++)
        if (e->move[i].room &&
            exti__elf_overlap(from, to, e->move[i].offset, e->move[i].offset + e->move[i].room))
            return false;
    return is_filled(s, 0) || is_filled(s, 'Z') || is_filled(s, 'X');
}

/* Whether only zeros for alignment lie between `at` and `start`. */
static bool follows(const struct elf_file *f, uint64_t at, uint64_t start)
{
    struct exti_span s;

    return start >= at && start - at < 16 &&
           !exti__span_sub(f->file, at, start - at, "", &s, NULL) && is_filled(s, 0);
}

/* Gives the range [*from, *to) of the notes that lie in a row from `at` on, and returns its end.
 * Loaders do not check where a PT_NOTE ends; one past the end of the file is none that can move. */
static uint64_t skip_notes(const struct elf_file *f, uint64_t at, uint64_t *from, uint64_t *to)
{
    *from = *to = at;
    for (size_t i = 0; i < f->phnum; i++) {
        const GElf_Phdr *ph = &f->phdr[i];
        struct exti_span note;

        if (ph->p_type != PT_NOTE || !ph->p_filesz || !follows(f, *to, ph->p_offset) ||
            exti__span_sub(f->file, ph->p_offset, ph->p_filesz, "", &note, NULL))
            continue;
        if (*from == *to)
            *from = ph->p_offset;
        *to = ph->p_offset + ph->p_filesz;
        i = SIZE_MAX; /* start over: the headers need not be in order */
    }
    return *to;
}

static uint64_t note_align(const struct elf_file *f)
{
    uint64_t align = 8;

    for (size_t i = 0; i < f->phnum; i++)
        if (f->phdr[i].p_type == PT_NOTE && exti__is_power_of_2(f->phdr[i].p_align) &&
            f->phdr[i].p_align > align)
            align = f->phdr[i].p_align;
    return align;
}

static void shift_notes(struct elf_edit *e)
{
    for (size_t i = 0; i < e->phnum; i++) {
        GElf_Phdr *ph = &e->phdr[i];

        if ((ph->p_type != PT_NOTE && ph->p_type != PT_GNU_PROPERTY) ||
            ph->p_offset < e->notes_at || ph->p_offset >= e->notes_end)
            continue;
        ph->p_offset += e->notes_by;
        ph->p_vaddr += e->notes_by;
        ph->p_paddr += e->notes_by;
    }
    for (size_t i = 0; i < e->f->shnum; i++) {
        GElf_Shdr *sh = &e->shdr[i];

        if (sh->sh_type != SHT_NOTE || sh->sh_offset < e->notes_at || sh->sh_offset >= e->notes_end)
            continue;
        sh->sh_offset += e->notes_by;
        sh->sh_addr += e->notes_by;
    }
}

/* GNU ld lays files out as [table][notes][hash table].  The hash table moves away, the notes slide
 * into its room, so that the build-id stays in the first page, and the table grows. */
static bool push_notes(struct elf_edit *e)
{
    const struct elf_file *f = e->f;
    const uint64_t from = phdr_table_end(f), to = from + exti__elf_phdr_size(f);
    bool moves[ELF_MOVE_COUNT] = {false};
    uint64_t notes, notes_end, by = 0, at = skip_notes(f, from, &notes, &notes_end);
    bool enough = false;
    bool fits = notes == notes_end || exti__align(to - notes, note_align(f), &by);

    for (int turn = 0; fits && !enough && turn < 2; turn++)
        for (size_t i = ELF_MOVE_GNU_HASH; !enough && i <= ELF_MOVE_HASH; i++) {
            if (moves[i] || !e->move[i].room || !follows(f, at, e->move[i].offset))
                continue;
            moves[i] = true;
            at = e->move[i].offset + e->move[i].room;
            enough = at >= to && at >= notes_end + by;
        }
    if (!enough || has_others(e, from, at))
        return false;
    for (size_t i = 0; i < ELF_MOVE_COUNT; i++)
        e->move[i].moves |= moves[i];
    e->notes_at = notes;
    e->notes_end = notes_end;
    e->notes_by = by;
    shift_notes(e);
    return true;
}

static int first_note(const struct elf_file *f)
{
    for (size_t i = 0; i < f->phnum; i++)
        if (f->phdr[i].p_type == PT_NOTE)
            return (int)i;
    return NONE;
}

static void remove_header(struct elf_edit *e, size_t at)
{
    e->phnum--;
    memmove(e->phdr + at, e->phdr + at + 1, (e->phnum - at) * sizeof *e->phdr);
}

static void insert_header(struct elf_edit *e, size_t at, GElf_Phdr ph)
{
    memmove(e->phdr + at + 1, e->phdr + at, (e->phnum - at) * sizeof *e->phdr);
    e->phdr[at] = ph;
    e->phnum++;
}

/* Removes entry `victim`, or with NONE makes the table longer, and opens a slot behind the last
 * PT_LOAD.  llvm-strip needs the header of a segment before those of all segments inside it, so a
 * PT_DYNAMIC that moves into the new segment and was listed earlier goes behind it. */
static size_t insert_slot(struct elf_edit *e, int victim)
{
    const uint64_t size = exti__elf_phdr_size(e->f);
    size_t at = 0;

    if (victim != NONE)
        remove_header(e, (size_t)victim);
    for (size_t i = 0; i < e->phnum; i++)
        if (e->phdr[i].p_type == PT_LOAD)
            at = i + 1;
    for (size_t i = 0; i < at && e->move[ELF_MOVE_DYNAMIC].moves; i++)
        if (e->phdr[i].p_type == PT_DYNAMIC) {
            GElf_Phdr dynamic = e->phdr[i];

            remove_header(e, i);
            insert_header(e, --at, dynamic);
            break;
        }
    insert_header(e, at, (GElf_Phdr){.p_type = PT_NULL});
    for (size_t i = 0; i < e->phnum; i++)
        if (e->phdr[i].p_type == PT_PHDR && e->phdr[i].p_filesz == e->f->phnum * size)
            e->phdr[i].p_filesz = e->phdr[i].p_memsz = e->phnum * size;
    return at;
}

int exti__elf_add_phdr_slot(struct elf_edit *e, size_t *index, struct exti_error *err)
{
    const bool may_grow = e->f->phnum + 1 < PN_XNUM;
    int victim = spare_entry(e->f);

    if (victim == NONE && !(may_grow && (has_gap_behind(e) || push_notes(e)))) {
        victim = first_note(e->f);
        if (victim == NONE)
            return exti__fail(
                err, EXTI_E_NOSPACE, e->f->ehdr.e_phoff,
                "program header table: no entry can be spared and no room is left behind it");
    }
    *index = insert_slot(e, victim);
    return 0;
}

size_t exti__elf_replace_phdr(struct elf_edit *e, size_t index)
{
    return insert_slot(e, (int)index);
}
