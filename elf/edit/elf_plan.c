#include "elf/edit/elf_plan.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "elf/edit/elf_cut.h"
#include "elf/edit/elf_dynamic.h"
#include "elf/edit/elf_emit.h"
#include "elf/edit/elf_place.h"
#include "elf/edit/elf_rehash.h"
#include "elf/edit/elf_rename.h"
#include "elf/edit/elf_text.h"
#include "elf/read/elf_open.h"

/* Programs may have a fixed address, and the kernel reads their headers by its own rules.  Linkers
 * give a program DT_DEBUG; a library that can also be run, like libc.so.6, has none. */
static int refuse_programs(const struct elf_file *f, struct exti_error *err)
{
    const GElf_Dyn *flags = exti__elf_tag(f, DT_FLAGS_1);
    const bool library = exti__elf_tag(f, DT_SONAME) || !exti__elf_tag(f, DT_DEBUG);

    if (flags && flags->d_un.d_val & DF_1_PIE)
        return exti__fail(err, EXTI_E_UNSUPPORTED, f->phdr[f->dynamic_phdr].p_offset,
                          "a position-independent program (DF_1_PIE), not a shared object");
    for (size_t i = 0; i < f->phnum; i++)
        if (f->phdr[i].p_type == PT_INTERP && !library)
            return exti__fail(err, EXTI_E_UNSUPPORTED, f->phdr[i].p_offset,
                              "a program: it has PT_INTERP, DT_DEBUG and no DT_SONAME");
    return 0;
}

static void free_elf_edit(struct elf_edit *e)
{
    exti__free(e->tags);
    for (size_t i = 0; i < e->text_count; i++)
        exti__free(e->texts[i]);
    exti__free(e->texts);
    exti__free(e->versions);
    exti__free(e->names);
    exti__free(e->name_at);
    exti__elf_strings_free(&e->strings);
    for (size_t i = 0; i < ELF_MOVE_COUNT; i++)
        exti__free(e->move[i].bytes);
    exti__free(e->phdr);
    exti__free(e->shdr);
}

static struct elf_move table_move(const struct elf_part *p, uint64_t align)
{
    return (struct elf_move){.vaddr = p->vaddr, .offset = p->s.base, .align = align};
}

static int init_edit(struct elf_edit *e, struct exti_error *err)
{
    const struct elf_file *f = e->f;
    const GElf_Phdr *dynamic = &f->phdr[f->dynamic_phdr];

    e->tail_at = f->file.n;
    e->phnum = f->phnum;
    e->phdr = exti__calloc(f->phnum + 1, sizeof *e->phdr);
    e->shdr = exti__calloc(f->shnum, sizeof *e->shdr);
    if (!e->phdr || !e->shdr)
        return exti__fail_nomem(err);
    memcpy(e->phdr, f->phdr, f->phnum * sizeof *e->phdr);
    if (f->shnum)
        memcpy(e->shdr, f->shdr, f->shnum * sizeof *e->shdr);
    e->move[ELF_MOVE_DYNAMIC] = (struct elf_move){.vaddr = dynamic->p_vaddr,
                                                  .offset = dynamic->p_offset,
                                                  .room = f->dyn_slots * exti__elf_dyn_size(f),
                                                  .align = 16};
    e->move[ELF_MOVE_GNU_HASH] = table_move(&f->gnu_hash, 8);
    e->move[ELF_MOVE_HASH] = table_move(&f->hash, 8);
    e->move[ELF_MOVE_STRTAB] = table_move(&f->strtab, 1);
    e->move[ELF_MOVE_STRTAB].room = f->strtab.s.n;
    return exti__elf_strings_init(&e->strings, f, err);
}

static int plan_edit(struct elf_edit *e, struct exti_error *err)
{
    int rc = init_edit(e, err);

    if (!rc)
        rc = exti__elf_edit_tags(e, err);
    if (!rc)
        rc = exti__elf_edit_names(e, err);
    if (!rc)
        rc = exti__elf_place_text(e, err);
    if (!rc)
        rc = exti__elf_edit_hashes(e, err);
    if (rc)
        return rc;
    exti__elf_fit_tags(e);
    e->move[ELF_MOVE_DYNAMIC].size = e->dyn_slots * exti__elf_dyn_size(e->f);
    e->move[ELF_MOVE_STRTAB].size = e->f->strtab.s.n + e->strings.added.n;
    e->move[ELF_MOVE_STRTAB].moves = e->strings.added.n != 0;
    rc = exti__elf_place(e, err);
    if (!rc)
        rc = exti__elf_emit(e, err);
    return rc ? rc : exti__plan_seal(e->plan, e->f->file, err);
}

static int fail_section(const struct elf_file *f, size_t i, const char *what, uint64_t want,
                        struct exti_error *err)
{
    return exti__fail(err, EXTI_E_FORMAT, f->ehdr.e_shoff + i * exti__elf_shdr_size(f),
                      "section header %zu: address 0x%" PRIx64 ", offset 0x%" PRIx64
                      ", but the loader finds %s at 0x%" PRIx64
                      "; remove the section headers (eu-strip --strip-sections) or link again",
                      i, f->shdr[i].sh_addr, f->shdr[i].sh_offset, what, want);
}

/* Debuggers and strip find PT_DYNAMIC by its section, and its strings by that section's sh_link
 * (gABI "Sections").  If they find others there than the loader does, they read the copy's new
 * string offsets in the wrong table. */
static int refuse_wrong_sections(const struct elf_file *f, struct exti_error *err)
{
    const GElf_Phdr *dynamic = &f->phdr[f->dynamic_phdr];

    for (size_t i = 0; i < f->shnum; i++) {
        const size_t link = f->shdr[i].sh_link;
        const GElf_Shdr *strings = link < f->shnum ? &f->shdr[link] : NULL;

        if (f->shdr[i].sh_type != SHT_DYNAMIC || !(f->shdr[i].sh_flags & SHF_ALLOC))
            continue;
        if (f->shdr[i].sh_addr != dynamic->p_vaddr || f->shdr[i].sh_offset != dynamic->p_offset)
            return fail_section(f, i, "PT_DYNAMIC", dynamic->p_vaddr, err);
        if (strings && strings->sh_type == SHT_STRTAB &&
            (strings->sh_addr != f->strtab.vaddr || strings->sh_offset != f->strtab.s.base))
            return fail_section(f, link, "DT_STRTAB", f->strtab.vaddr, err);
    }
    return 0;
}

/* Linkers make about a dozen.  Bounds the work on a hostile file. */
enum { MOST_HEADERS = 1024 };

int exti__elf_plan(struct exti_span file, const struct exti_request *req, struct exti_plan *plan,
                   struct exti_error *err)
{
    struct elf_file f;
    struct elf_edit e = {.f = &f, .opts = req->opts, .plan = plan};
    int rc = exti__elf_open(file, &f, err);

    if (rc)
        return rc;
    if (f.phnum > MOST_HEADERS)
        rc = exti__fail(err, EXTI_E_UNSUPPORTED, f.ehdr.e_phoff,
                        "program header table: %zu entries, at most %d can be edited", f.phnum,
                        MOST_HEADERS);
    else
        rc = refuse_programs(&f, err);
    if (!rc)
        rc = refuse_wrong_sections(&f, err);
    if (!rc)
        rc = plan_edit(&e, err);
    if (!rc && req->lean)
        rc = exti__elf_cut_data(&e, err);
    if (!rc && req->undebugged)
        exti__elf_cut_debug(&e);
    free_elf_edit(&e);
    exti__elf_close(&f);
    return rc;
}
