/* Structures that stay in place become patches; those that move become patches or the tail. */
#include "elf/edit/elf_emit.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "elf/edit/elf_encode.h"
#include "elf/edit/elf_symtab.h"
#include "elf/read/elf_symbols.h"

/* Patches each run of `unit`-byte records in `new` that differ from the input at `at`. */
static int patch_changes(struct elf_edit *e, uint64_t at, const uint8_t *new, size_t n, size_t unit,
                         const char *what, struct exti_error *err)
{
    struct exti_span old;
    int rc = exti__span_sub(e->f->file, at, n, what, &old, err);

    for (size_t i = 0; !rc && i + unit <= n; i += unit) {
        size_t run = 0;

        while (i + run + unit <= n && memcmp(old.p + i + run, new + i + run, unit) != 0)
            run += unit;
        if (!run)
            continue;
        rc = exti__plan_patch(e->plan, at + i, new + i, run, what, err);
        i += run;
    }
    return rc;
}

/* The value of entry `i` of the new table. */
static uint64_t new_tag_value(const struct elf_edit *e, size_t i)
{
    const struct elf_tag *t = &e->tags[i];
    const struct elf_move *dynamic = &e->move[ELF_MOVE_DYNAMIC];
    uint64_t was = dynamic->vaddr + t->slot * exti__elf_dyn_size(e->f);
    uint64_t is =
        (dynamic->moves ? dynamic->to_vaddr : dynamic->vaddr) + i * exti__elf_dyn_size(e->f);
    const struct elf_move *m = NULL;

    if (t->text)
        return t->text_at;
    if (t->d.d_tag == DT_STRSZ)
        return e->move[ELF_MOVE_STRTAB].size;
    if (t->d.d_tag == DT_STRTAB)
        m = &e->move[ELF_MOVE_STRTAB];
    if (t->d.d_tag == DT_GNU_HASH)
        m = &e->move[ELF_MOVE_GNU_HASH];
    if (t->d.d_tag == DT_HASH)
        m = &e->move[ELF_MOVE_HASH];
    if (m && m->moves)
        return m->to_vaddr;
    /* Its value is relative to the address of its own slot. */
    if (t->d.d_tag == DT_MIPS_RLD_MAP_REL && e->f->ehdr.e_machine == EM_MIPS)
        return t->d.d_un.d_val + was - is;
    return t->d.d_un.d_val;
}

/* Writes the new PT_DYNAMIC to `out`.  Slots behind the old end keep their contents. */
static void encode_dynamic(const struct elf_edit *e, uint8_t *out)
{
    const struct elf_file *f = e->f;
    const size_t size = exti__elf_dyn_size(f);

    if (!e->move[ELF_MOVE_DYNAMIC].moves)
        memcpy(out, f->file.p + f->phdr[f->dynamic_phdr].p_offset, f->dyn_slots * size);
    for (size_t i = 0; i < e->tag_count; i++) {
        GElf_Dyn d = e->tags[i].d;

        d.d_un.d_val = new_tag_value(e, i);
        exti__elf_put_dyn(f, out + i * size, &d);
    }
    if (e->tag_count != f->dyn_count && e->tag_count < e->dyn_slots)
        memset(out + e->tag_count * size, 0, size);
    for (size_t i = e->tag_count; i < f->dyn_count && i < e->dyn_slots; i++)
        memset(out + i * size, 0, size);
}

/* Gives the new contents of a structure that may move; the caller frees *out. */
static int new_contents(const struct elf_edit *e, size_t which, uint8_t **out,
                        struct exti_error *err)
{
    const struct elf_strings *s = &e->strings;
    const struct elf_move *m = &e->move[which];
    uint8_t *p = exti__calloc((size_t)m->size, 1);

    if (!p)
        return exti__fail_nomem(err);
    if (which == ELF_MOVE_DYNAMIC) {
        encode_dynamic(e, p);
    } else if (which == ELF_MOVE_STRTAB) {
        memcpy(p, s->bytes, s->f->strtab.s.n);
        if (s->added.n)
            memcpy(p + s->f->strtab.s.n, s->added.p, s->added.n);
    } else {
        memcpy(p, m->bytes ? m->bytes : e->f->file.p + m->offset, (size_t)m->size);
    }
    *out = p;
    return 0;
}

static int append_to_tail(struct elf_edit *e, uint64_t at, const uint8_t *p, size_t n,
                          struct exti_error *err)
{
    struct exti_plan *plan = e->plan;
    int rc = 0;

    if (!plan->tail.n)
        plan->tail_offset = at;
    else
        rc = exti__buf_zeros(&plan->tail, (size_t)(at - plan->tail_offset) - plan->tail.n, err);
    return rc ? rc : exti__buf_append(&plan->tail, p, n, err);
}

static int emit_moves(struct elf_edit *e, struct exti_error *err)
{
    static const char *const what[ELF_MOVE_COUNT] = {"PT_DYNAMIC", "DT_GNU_HASH", "DT_HASH",
                                                     "DT_STRTAB"};
    int rc = 0;

    for (size_t i = 0; !rc && i < ELF_MOVE_COUNT; i++) {
        const struct elf_move *m = &e->move[i];
        const size_t unit = i == ELF_MOVE_STRTAB    ? 1
                            : i == ELF_MOVE_DYNAMIC ? exti__elf_dyn_size(e->f)
                                                    : 4;
        uint8_t *p = NULL;

        if (!m->moves && !m->bytes && i != ELF_MOVE_STRTAB && i != ELF_MOVE_DYNAMIC)
            continue;
        rc = new_contents(e, i, &p, err);
        if (rc)
            return rc;
        if (!m->moves)
            rc = patch_changes(e, m->offset, p, (size_t)m->size, unit, what[i], err);
        else if (m->to_offset < e->tail_at)
            rc = exti__plan_patch(e->plan, m->to_offset, p, (size_t)m->size, what[i], err);
        else
            rc = append_to_tail(e, m->to_offset, p, (size_t)m->size, err);
        exti__free(p);
    }
    return rc;
}

static int emit_dynsym(struct elf_edit *e, struct exti_error *err)
{
    const bool clear = e->opts->flags & EXTI_RW_CLEAR_UNIQUE;
    const struct elf_file *f = e->f;
    uint8_t word[4];
    int rc = 0;

    for (size_t i = 1; !rc && i < f->sym_count; i++) {
        const GElf_Sym *s = &f->sym[i];

        if (e->names && e->names[i] && e->name_at[i] != s->st_name) {
            exti__elf_put_word(f, word, (uint32_t)e->name_at[i]);
            rc = exti__plan_patch(e->plan, exti__elf_sym_offset(f, i), word, 4,
                                  "DT_SYMTAB: symbol name", err);
        }
        if (!rc && clear && GELF_ST_BIND(s->st_info) == STB_GNU_UNIQUE) {
            word[0] = GELF_ST_INFO(STB_GLOBAL, GELF_ST_TYPE(s->st_info));
            rc = exti__plan_patch(e->plan, exti__elf_sym_offset(f, i) + (f->is64 ? 4 : 12), word, 1,
                                  "DT_SYMTAB: symbol binding", err);
        }
    }
    return rc;
}

static int emit_versions(struct elf_edit *e, struct exti_error *err)
{
    uint8_t word[4];
    int rc = 0;

    for (size_t i = 0; !rc && i < e->version_count; i++) {
        exti__elf_put_word(e->f, word, (uint32_t)e->versions[i].text_at);
        rc =
            exti__plan_patch(e->plan, e->versions[i].name_at, word, 4, "DT_VERNEED file name", err);
    }
    return rc;
}

static int emit_notes(struct elf_edit *e, struct exti_error *err)
{
    if (!e->notes_by)
        return 0;
    return exti__plan_patch(e->plan, e->notes_at + e->notes_by, e->f->file.p + e->notes_at,
                            (size_t)(e->notes_end - e->notes_at), "notes", err);
}

static int emit_phdrs(struct elf_edit *e, struct exti_error *err)
{
    const struct elf_file *f = e->f;
    const size_t size = exti__elf_phdr_size(f);
    uint8_t *p = exti__alloc(e->phnum * size), half[2];
    int rc;

    if (!p)
        return exti__fail_nomem(err);
    for (size_t i = 0; i < e->phnum; i++)
        exti__elf_put_phdr(f, p + i * size, &e->phdr[i]);
    rc = patch_changes(e, f->ehdr.e_phoff, p, e->phnum * size, size, "program header table", err);
    exti__free(p);
    exti__elf_put_half(f, half, (uint16_t)e->phnum);
    if (!rc && e->phnum != f->phnum)
        rc = exti__plan_patch(e->plan, f->is64 ? 56 : 44, half, 2, "e_phnum", err);
    return rc;
}

static int emit_shdrs(struct elf_edit *e, struct exti_error *err)
{
    const struct elf_file *f = e->f;
    const size_t size = exti__elf_shdr_size(f);
    uint8_t record[sizeof(Elf64_Shdr)];
    int rc = 0;

    for (size_t i = 0; !rc && i < f->shnum; i++) {
        if (memcmp(&f->shdr[i], &e->shdr[i], sizeof *f->shdr) == 0)
            continue;
        exti__elf_put_shdr(f, record, &e->shdr[i]);
        rc = exti__plan_patch(e->plan, f->ehdr.e_shoff + i * size, record, size,
                              "section header table", err);
    }
    return rc;
}

int exti__elf_emit(struct elf_edit *e, struct exti_error *err)
{
    int rc = emit_moves(e, err);

    if (!rc)
        rc = emit_dynsym(e, err);
    if (!rc)
        rc = emit_versions(e, err);
    if (!rc)
        rc = emit_notes(e, err);
    if (!rc)
        rc = emit_phdrs(e, err);
    if (!rc)
        rc = emit_shdrs(e, err);
    return rc ? rc : exti__elf_emit_symtab(e, err);
}
