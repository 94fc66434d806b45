#include "elf/check/elf_check_block.h"

#include "base/checked.h"
#include "elf/check/elf_check_hash.h"

enum { TABLES = 4 };

static void list_tables(const struct elf_file *f, struct elf_range out[TABLES])
{
    const GElf_Phdr *dynamic = &f->phdr[f->dynamic_phdr];

    out[0] = (struct elf_range){dynamic->p_offset, dynamic->p_filesz};
    out[1] = (struct elf_range){f->strtab.s.base, f->strtab.s.n};
    out[2] = (struct elf_range){f->gnu_hash.s.base, exti__elf_gnu_hash_size(f)};
    out[3] = (struct elf_range){f->hash.s.base, exti__elf_sysv_hash_size(f)};
    for (size_t i = 0; i < TABLES; i++)
        if (!exti__add(out[i].at, out[i].end, &out[i].end))
            out[i].end = UINT64_MAX;
}

/* Whether tables fill [at, end) but for zeros that align them. */
static bool is_full(const struct elf_file *f, uint64_t at, uint64_t end)
{
    struct elf_range table[TABLES];
    bool any = false;

    list_tables(f, table);
    while (at < end) {
        size_t i = 0;

        while (i < TABLES && (table[i].at != at || table[i].end <= at))
            i++;
        if (i == TABLES && (!any || at % 16 == 0 || f->file.p[at]))
            return false;
        any = true;
        at = i < TABLES ? table[i].end : at + 1;
    }
    return at == end;
}

/* Whether a section that is no such table, or a program header, lies in [from, to). */
static bool has_others(const struct elf_file *f, uint64_t from, uint64_t to)
{
    for (size_t i = 0; i < f->shnum; i++) {
        const GElf_Shdr *sh = &f->shdr[i];
        const bool table = sh->sh_type == SHT_DYNAMIC || sh->sh_type == SHT_STRTAB ||
                           sh->sh_type == SHT_GNU_HASH || sh->sh_type == SHT_HASH;

        if (sh->sh_type != SHT_NULL && sh->sh_type != SHT_NOBITS && sh->sh_size &&
            sh->sh_offset >= from && sh->sh_offset < to && !table)
            return true;
    }
    for (size_t i = 0; i < f->phnum; i++)
        if (f->phdr[i].p_type != PT_LOAD && f->phdr[i].p_type != PT_DYNAMIC &&
            f->phdr[i].p_filesz && f->phdr[i].p_offset >= from && f->phdr[i].p_offset < to)
            return true;
    return false;
}

void exti__elf_match_block(struct elf_check *c)
{
    const struct elf_file *b = &c->before;
    const GElf_Phdr *last = NULL;
    uint64_t end;

    c->block = ELF_NO_MATCH;
    for (size_t i = 0; i < b->phnum; i++)
        if (b->phdr[i].p_type == PT_LOAD)
            last = &b->phdr[i];
    if (!last || last->p_filesz != last->p_memsz || last->p_flags & PF_X ||
        !exti__add(last->p_offset, last->p_filesz, &end) || end != b->file.n ||
        !is_full(b, last->p_offset, end) || has_others(b, last->p_offset, end))
        return;
    c->block = (size_t)(last - b->phdr);
}

bool exti__elf_is_grown_block(const struct elf_check *c, size_t j)
{
    return c->block != ELF_NO_MATCH && c->match[j] == c->block &&
           c->after.phdr[j].p_filesz > c->before.phdr[c->block].p_filesz;
}

bool exti__elf_in_grown_block(const struct elf_check *c, uint64_t offset)
{
    bool grown = false;

    for (size_t j = 0; j < c->after.phnum && !grown; j++)
        grown = exti__elf_is_grown_block(c, j);
    return grown && offset >= c->before.phdr[c->block].p_offset;
}
