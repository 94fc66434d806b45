/* No loader reads .symtab, but debuggers and strip do. */
#include "elf/edit/elf_symtab.h"

#include "elf/edit/elf_encode.h"

/* The loader maps no .symtab, so the header of one that overlaps a PT_LOAD is wrong. */
static bool is_mapped(const struct elf_file *f, const GElf_Shdr *sh)
{
    for (size_t i = 0; i < f->phnum; i++)
        if (f->phdr[i].p_type == PT_LOAD &&
            exti__elf_overlap(sh->sh_offset, sh->sh_offset + sh->sh_size, f->phdr[i].p_offset,
                              f->phdr[i].p_offset + f->phdr[i].p_filesz))
            return true;
    return false;
}

static bool changes_symtab(const struct elf_edit *e)
{
    if (e->opts->flags & EXTI_RW_CLEAR_UNIQUE || e->notes_by)
        return true;
    for (size_t i = 0; i < ELF_MOVE_COUNT; i++)
        if (e->move[i].moves)
            return true;
    return false;
}

/* The section index of each symbol in a file with more sections than st_shndx can number (gABI
 * "Symbol Table", SHN_XINDEX); empty in other files. */
static struct exti_span wide_indices(const struct elf_file *f, size_t symtab)
{
    struct exti_span s;

    for (size_t i = 0; i < f->shnum; i++)
        if (f->shdr[i].sh_type == SHT_SYMTAB_SHNDX && f->shdr[i].sh_link == symtab &&
            !exti__span_sub(f->file, f->shdr[i].sh_offset, f->shdr[i].sh_size, "", &s, NULL))
            return s;
    return (struct exti_span){0};
}

/* The new value of a symbol of section `shndx`, or with `special` of a reserved index. */
static uint64_t moved_symbol_value(const struct elf_edit *e, uint32_t shndx, bool special,
                                   uint8_t info, uint64_t value)
{
    const struct elf_move *dynamic = &e->move[ELF_MOVE_DYNAMIC];

    /* Some linkers make _DYNAMIC absolute. */
    if (special && shndx == SHN_ABS && dynamic->moves && value == dynamic->vaddr &&
        GELF_ST_TYPE(info) == STT_OBJECT)
        return dynamic->to_vaddr;
    if (shndx == SHN_UNDEF || special || shndx >= e->f->shnum)
        return value;
    if (value < e->f->shdr[shndx].sh_addr ||
        value - e->f->shdr[shndx].sh_addr > e->f->shdr[shndx].sh_size)
        return value;
    return value + (e->shdr[shndx].sh_addr - e->f->shdr[shndx].sh_addr);
}

/* Edits the entry in `s`.  `wide` is its section index from SHT_SYMTAB_SHNDX, or 0. */
static int edit_symbol(struct elf_edit *e, struct exti_span s, uint32_t wide,
                       struct exti_error *err)
{
    const struct elf_file *f = e->f;
    const size_t kind = f->is64 ? 4 : 12, place = f->is64 ? 8 : 4, word = f->is64 ? 8 : 4;
    struct exti_span half = {.p = s.p + kind + 2, .n = 2}, addr = {.p = s.p + place, .n = word};
    uint32_t shndx = (uint32_t)exti__elf_word_of(f, half, 0, 2);
    bool special = shndx >= SHN_LORESERVE;
    uint64_t value, to;
    uint8_t info = s.p[kind], out[8];
    int rc = 0;

    if (e->opts->flags & EXTI_RW_CLEAR_UNIQUE && GELF_ST_BIND(info) == STB_GNU_UNIQUE) {
        out[0] = GELF_ST_INFO(STB_GLOBAL, GELF_ST_TYPE(info));
        rc = exti__plan_patch(e->plan, s.base + kind, out, 1, ".symtab: symbol binding", err);
    }
    if (rc || shndx == SHN_UNDEF)
        return rc;
    if (shndx == SHN_XINDEX && wide) {
        shndx = wide;
        special = false;
    }
    value = exti__elf_word_of(f, addr, 0, word);
    to = moved_symbol_value(e, shndx, special, info, value);
    if (to == value)
        return 0;
    exti__elf_put_addr(f, out, to);
    return exti__plan_patch(e->plan, s.base + place, out, word, ".symtab: symbol value", err);
}

int exti__elf_emit_symtab(struct elf_edit *e, struct exti_error *err)
{
    const struct elf_file *f = e->f;
    const size_t size = exti__elf_sym_size(f);
    int rc = 0;

    if (!changes_symtab(e))
        return 0;
    for (size_t i = 0; i < f->shnum; i++) {
        const GElf_Shdr *sh = &f->shdr[i];
        struct exti_span table, wide, s;

        if (sh->sh_type != SHT_SYMTAB ||
            exti__span_sub(f->file, sh->sh_offset, sh->sh_size, "", &table, NULL) ||
            is_mapped(f, sh))
            continue;
        wide = wide_indices(f, i);
        for (uint64_t at = size; !rc && at + size <= table.n; at += size) {
            rc = exti__span_sub(table, at, size, ".symtab", &s, err);
            if (!rc)
                rc = edit_symbol(e, s, exti__elf_word(f, wide, (size_t)(at / size)), err);
        }
        /* The gABI allows one SHT_SYMTAB. */
        return rc;
    }
    return rc;
}
