#include "elf/read/elf_left_data.h"

#include "base/checked.h"
#include "elf/read/elf_reloc.h"

/* A block of most file systems. */
#define BLOCK ((uint64_t)4096)

/* Of a larger segment all stays: its pages are read when somebody looks at them, and not when the
 * copy is loaded. */
#define MOST_BYTES ((uint64_t)2 << 20)

#define WORD 8

/* The psABIs' relocations that write one word, and do not look at what was there. */
static const struct word_types {
    uint16_t machine;
    uint32_t types[6];
} word_types[] = {
    {EM_X86_64,
     {
         1,  /* R_X86_64_64 */
         6,  /* R_X86_64_GLOB_DAT */
         8,  /* R_X86_64_RELATIVE */
         16, /* R_X86_64_DTPMOD64 */
         17, /* R_X86_64_DTPOFF64 */
         18, /* R_X86_64_TPOFF64 */
     }},
    {EM_AARCH64,
     {
         257,  /* R_AARCH64_ABS64 */
         1025, /* R_AARCH64_GLOB_DAT */
         1027, /* R_AARCH64_RELATIVE */
         1028, /* R_AARCH64_TLS_DTPMOD */
         1029, /* R_AARCH64_TLS_DTPREL */
         1030, /* R_AARCH64_TLS_TPREL */
     }},
};

static const struct word_types *types_of(const struct elf_file *f)
{
    for (size_t i = 0; i < sizeof word_types / sizeof *word_types; i++)
        if (word_types[i].machine == f->ehdr.e_machine && f->is64)
            return &word_types[i];
    return NULL;
}

/* The file part of one segment, by addresses; `from` rises as something is found that loaders look
 * at. */
struct search {
    const struct elf_file *f;
    const GElf_Phdr *segment;
    const struct word_types *words;
    uint64_t from, to;
};

static void keep(struct search *s, uint64_t at, uint64_t size)
{
    uint64_t end;

    if (!exti__add(at, size, &end))
        end = UINT64_MAX;
    if (at < s->to && end > s->from)
        s->from = end;
}

/* ---- what loaders look at ---- */

/* What is bound at the first call is read before: glibc adds the load address to it
 * (elf_machine_lazy_rel). */
static bool is_word(const struct search *s, const struct elf_reloc *r)
{
    for (size_t i = 0; i < sizeof s->words->types / sizeof *s->words->types; i++)
        if (s->words->types[i] == r->type)
            return !r->plt;
    return false;
}

static bool keep_place(void *user, const struct elf_reloc *r)
{
    struct search *s = user;

    if (!is_word(s, r))
        keep(s, r->place, 2 * (uint64_t)WORD);
    return true;
}

/* What they make read-only (by whole pages: _dl_protect_relro), copy for threads, or find by a
 * header. */
static void keep_headers(struct search *s)
{
    for (size_t i = 0; i < s->f->phnum; i++) {
        const GElf_Phdr *ph = &s->f->phdr[i];

        if (ph->p_type == PT_LOAD || ph->p_type == PT_NULL)
            continue;
        keep(s, ph->p_vaddr, ph->p_type == PT_GNU_RELRO ? ph->p_memsz : ph->p_filesz);
    }
}

/* The functions among them are called when the data is there. */
static bool is_array(int64_t tag)
{
    return tag == DT_INIT_ARRAY || tag == DT_FINI_ARRAY || tag == DT_PREINIT_ARRAY;
}

/* Of the tables that tags point at only the first three words of the global offset table, which
 * loaders write, have a known size here. */
static void keep_tables(struct search *s)
{
    for (size_t i = 0; i < s->f->dyn_count; i++) {
        const GElf_Dyn *d = &s->f->dyn[i];

        if (d->d_tag == DT_PLTGOT)
            keep(s, d->d_un.d_ptr, 3 * (uint64_t)WORD);
        else if (exti__elf_tag_is_pointer(d->d_tag) && !is_array(d->d_tag) &&
                 d->d_un.d_ptr >= s->segment->p_vaddr)
            keep(s, d->d_un.d_ptr, UINT64_MAX);
    }
}

/* ---- what else is in the file ---- */

static bool overlaps(uint64_t at, uint64_t size, const struct exti_range *part)
{
    uint64_t end;

    return !exti__add(at, size, &end) || (at < part->at + part->n && part->at < end);
}

/* Whether something else has bytes of that part of the file. */
static bool is_shared(const struct search *s, const struct exti_range *part)
{
    const struct elf_file *f = s->f;

    if (overlaps(f->ehdr.e_phoff, f->phnum * exti__elf_phdr_size(f), part) ||
        (f->shnum && overlaps(f->ehdr.e_shoff, f->shnum * exti__elf_shdr_size(f), part)))
        return true;
    for (size_t i = 0; i < f->phnum; i++)
        if (&f->phdr[i] != s->segment && f->phdr[i].p_type == PT_LOAD &&
            overlaps(f->phdr[i].p_offset, f->phdr[i].p_filesz, part))
            return true;
    for (size_t i = 0; i < f->shnum; i++) {
        const GElf_Shdr *sh = &f->shdr[i];

        if (sh->sh_type != SHT_NULL && sh->sh_type != SHT_NOBITS && !(sh->sh_flags & SHF_ALLOC) &&
            overlaps(sh->sh_offset, sh->sh_size, part))
            return true;
    }
    return false;
}

/* ---- the search ---- */

/* The last writable segment: what is read-only once it is relocated may have one of its own before
 * it (lld). */
static const GElf_Phdr *find_segment(const struct elf_file *f)
{
    const GElf_Phdr *found = NULL;

    for (size_t i = 0; i < f->phnum; i++)
        if (f->phdr[i].p_type == PT_LOAD && (f->phdr[i].p_flags & PF_W))
            found = &f->phdr[i];
    return found && found->p_flags == (PF_R | PF_W) && found->p_filesz <= found->p_memsz &&
                   (found->p_vaddr - found->p_offset) % BLOCK == 0
               ? found
               : NULL;
}

static bool has_table(const struct elf_file *f, int64_t size)
{
    const GElf_Dyn *d = exti__elf_tag(f, size);

    return d && d->d_un.d_val;
}

/* The values of what follows the last entry: a loader may leave a mark in the first of them, as
 * nobody else looks at any. */
static bool ends_with_zeros(const struct elf_file *f)
{
    for (size_t i = f->dyn_count; i < f->dyn_slots; i++)
        if (f->dyn[i].d_un.d_val)
            return false;
    return f->dyn_count < f->dyn_slots;
}

int exti__elf_left_data(const struct elf_file *f, struct exti_range *out, struct exti_error *err)
{
    struct search s = {.f = f, .segment = find_segment(f), .words = types_of(f)};
    struct exti_range part;
    int rc;

    out->n = 0;
    if (!s.segment || !s.words || has_table(f, DT_RELSZ) || has_table(f, DT_RELRSZ) ||
        !ends_with_zeros(f) || !exti__add(s.segment->p_vaddr, s.segment->p_filesz, &s.to))
        return 0;
    s.from = s.segment->p_vaddr;
    keep_headers(&s);
    keep_tables(&s);
    if (s.from >= s.to || s.to - s.from < BLOCK)
        return 0;
    rc = exti__elf_each_reloc(f, keep_place, &s, err);
    if (rc || !exti__align(s.from, BLOCK, &s.from) || s.from >= s.to || s.to - s.from < BLOCK ||
        s.to - s.from > MOST_BYTES)
        return rc;
    part = (struct exti_range){(size_t)(s.segment->p_offset + (s.from - s.segment->p_vaddr)),
                               (size_t)(s.to - s.from)};
    if (!is_shared(&s, &part))
        *out = part;
    return 0;
}
