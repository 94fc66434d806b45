#include "elf/check/elf_check_bytes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "elf/check/elf_check_block.h"
#include "elf/check/elf_check_expect.h"
#include "elf/check/elf_check_hash.h"
#include "elf/read/elf_version.h"

/* ---- DT_STRTAB: only strings that an edit replaces may differ -------------------------------- */

static void mark_string(bool *free_bytes, const struct elf_file *f, uint64_t off)
{
    const char *text = exti__elf_check_text(f, off);

    if (text)
        memset(free_bytes + off, true, strlen(text));
}

static bool may_change(const struct exti_rewrite_opts *o, int64_t tag)
{
    switch (tag) {
    case DT_SONAME:
        return !o || o->id;
    case DT_NEEDED:
        return !o || o->needed_count;
    case DT_RPATH:
    case DT_RUNPATH:
        return !o || o->path_set || o->path_prepend || o->origin;
    default:
        return false;
    }
}

struct marking {
    const struct elf_file *f;
    bool *free_bytes;
};

static int mark_file(void *user, const struct elf_version_ref *ref, struct exti_error *err)
{
    const struct marking *m = user;

    (void)err;
    if (ref->kind == ELF_VERSION_FILE)
        mark_string(m->free_bytes, m->f, ref->name);
    return 0;
}

static void mark_edited(const struct elf_check *c, bool *free_bytes)
{
    const struct elf_file *b = &c->before;
    struct marking m = {b, free_bytes};

    for (size_t i = 0; i < b->dyn_count; i++)
        if (may_change(c->opts, b->dyn[i].d_tag))
            mark_string(free_bytes, b, b->dyn[i].d_un.d_val);
    /* The check of versions reports a malformed table. */
    if (may_change(c->opts, DT_NEEDED))
        exti__elf_versions(b, mark_file, &m, NULL);
    for (size_t i = 0; (!c->opts || c->opts->rename_count) && i < b->sym_count; i++) {
        const char *name = exti__elf_check_text(b, b->sym[i].st_name);

        if (name && (!c->opts || exti__elf_renamed(c, name) != name))
            mark_string(free_bytes, b, b->sym[i].st_name);
    }
}

int exti__elf_check_strings(struct elf_check *c, struct exti_error *err)
{
    const struct exti_span b = c->before.strtab.s;
    /* A table that moves leaves its old bytes behind, unless it makes room for others. */
    const uint64_t at = exti__elf_in_grown_block(c, b.base) ? c->after.strtab.s.base : b.base;
    struct exti_span a;
    bool *free_bytes;

    if (exti__span_sub(c->after.file, at, b.n, "", &a, NULL) || memcmp(b.p, a.p, b.n) == 0)
        return 0;
    free_bytes = exti__calloc(b.n, sizeof *free_bytes);
    if (!free_bytes)
        return exti__fail_nomem(err);
    mark_edited(c, free_bytes);
    for (size_t i = 0; i < b.n && !c->findings.stop; i++)
        if (b.p[i] != a.p[i] && !free_bytes[i])
            exti__elf_finding(c, at + i,
                              "DT_STRTAB + 0x%zx: byte 0x%02x, not 0x%02x, in no string that an "
                              "edit replaces",
                              i, a.p[i], b.p[i]);
    exti__free(free_bytes);
    return 0;
}

/* ---- the bytes that no other check covers ---------------------------------------------------- */

/* Excludes a range of the file from the comparison of bytes. */
static int exclude_range(struct elf_check *c, uint64_t at, uint64_t size, struct exti_error *err)
{
    struct elf_range r = {at, UINT64_MAX}, *p;

    if (!size)
        return 0;
    exti__add(at, size, &r.end);
    p = exti__array_room(c->ranges, c->range_count, &c->range_cap, sizeof *p);
    if (!p)
        return exti__fail_nomem(err);
    c->ranges = p;
    c->ranges[c->range_count++] = r;
    return 0;
}

/* Hash tables change with symbol names, or make room for notes. */
static int exclude_hashes(struct elf_check *c, struct exti_error *err)
{
    const struct elf_file *b = &c->before, *a = &c->after;
    const bool renamed = !c->opts || c->opts->rename_count;
    int rc = 0;

    if (b->hash.present && (renamed || a->hash.vaddr != b->hash.vaddr))
        rc = exclude_range(c, b->hash.s.base, exti__elf_sysv_hash_size(b), err);
    if (!rc && b->gnu_hash.present && (renamed || a->gnu_hash.vaddr != b->gnu_hash.vaddr))
        rc = exclude_range(c, b->gnu_hash.s.base, exti__elf_gnu_hash_size(b), err);
    return rc;
}

static int exclude_segments(struct elf_check *c, struct exti_error *err)
{
    const struct elf_file *a = &c->after;
    int rc = 0;

    for (size_t j = 0; !rc && j < a->phnum; j++) {
        const GElf_Phdr *now = &a->phdr[j], *old = exti__elf_original(c, j);

        if (!old)
            continue;
        if (now->p_type == PT_LOAD) {
            if (now->p_filesz > old->p_filesz)
                rc = exclude_range(c, old->p_offset + old->p_filesz, now->p_filesz - old->p_filesz,
                                   err);
        } else if (now->p_type == PT_DYNAMIC) {
            if (now->p_offset == old->p_offset)
                rc = exclude_range(c, old->p_offset, old->p_filesz, err);
        } else if (now->p_offset != old->p_offset) {
            rc = exclude_range(c, old->p_offset, old->p_filesz, err);
            if (!rc)
                rc = exclude_range(c, now->p_offset, now->p_filesz, err);
        }
    }
    return rc;
}

static int exclude_sections(struct elf_check *c, struct exti_error *err)
{
    const struct elf_file *b = &c->before;
    int rc;

    if (!b->shdr)
        return 0;
    rc = exclude_range(c, b->ehdr.e_shoff, b->shnum * exti__elf_shdr_size(b), err);
    for (size_t i = 1; !rc && i < b->shnum; i++)
        if (b->shdr[i].sh_type == SHT_SYMTAB && !(b->shdr[i].sh_flags & SHF_ALLOC) &&
            b->shdr[i].sh_entsize == exti__elf_sym_size(b))
            rc =
                exclude_range(c, b->shdr[i].sh_offset,
                              b->shdr[i].sh_size - b->shdr[i].sh_size % exti__elf_sym_size(b), err);
    return rc;
}

/* Excludes a changed string reference of the version tables; the check of versions covers it. */
static int exclude_version(void *user, const struct elf_version_ref *ref, struct exti_error *err)
{
    struct elf_check *c = user;
    struct exti_span b, a;

    if (exti__span_sub(c->before.file, ref->name_at, 4, "", &b, NULL) ||
        exti__span_sub(c->after.file, ref->name_at, 4, "", &a, NULL) || memcmp(b.p, a.p, 4) == 0)
        return 0;
    return exclude_range(c, ref->name_at, 4, err);
}

/* Its tables change their places in it; other checks compare their contents. */
static int exclude_block(struct elf_check *c, struct exti_error *err)
{
    const struct elf_file *b = &c->before;

    if (c->block == ELF_NO_MATCH || !exti__elf_in_grown_block(c, b->phdr[c->block].p_offset))
        return 0;
    return exclude_range(c, b->phdr[c->block].p_offset, b->phdr[c->block].p_filesz, err);
}

static int exclude_checked(struct elf_check *c, struct exti_error *err)
{
    const struct elf_file *b = &c->before;
    const size_t more = c->after.phnum > b->phnum ? c->after.phnum - b->phnum : 0;
    int rc = exclude_range(c, 0, b->is64 ? 64 : 52, err);

    if (!rc)
        rc = exclude_range(c, b->ehdr.e_phoff, (b->phnum + more) * exti__elf_phdr_size(b), err);
    if (!rc)
        rc = exclude_range(c, b->strtab.s.base, b->strtab.s.n, err);
    if (!rc)
        rc = exclude_range(c, b->symtab.s.base, b->symtab.s.n, err);
    if (!rc)
        rc = exclude_hashes(c, err);
    if (!rc)
        rc = exclude_segments(c, err);
    if (!rc)
        rc = exclude_sections(c, err);
    if (!rc)
        rc = exclude_block(c, err);
    return rc ? rc : exti__elf_versions(b, exclude_version, c, err);
}

static int by_range_start(const void *a, const void *b)
{
    const struct elf_range *x = a, *y = b;

    return (x->at > y->at) - (x->at < y->at);
}

/* What the original has at `at`, for messages. */
static const char *region_name(const struct elf_file *f, uint64_t at)
{
    for (size_t i = 1; i < f->shnum; i++)
        if (f->shdr[i].sh_type != SHT_NOBITS && at >= f->shdr[i].sh_offset &&
            at - f->shdr[i].sh_offset < f->shdr[i].sh_size)
            return exti__elf_section_name(f, &f->shdr[i]);
    for (size_t i = 0; i < f->phnum; i++)
        if (f->phdr[i].p_type == PT_LOAD && at >= f->phdr[i].p_offset &&
            at - f->phdr[i].p_offset < f->phdr[i].p_filesz)
            return "PT_LOAD";
    return "no section";
}

/* Reports the first difference in [at, end). */
static void compare_bytes(struct elf_check *c, uint64_t at, uint64_t end)
{
    const struct exti_span b = c->before.file, a = c->after.file;

    if (end > b.n)
        end = b.n;
    if (end > a.n)
        end = a.n;
    if (at >= end || memcmp(b.p + at, a.p + at, (size_t)(end - at)) == 0)
        return;
    while (b.p[at] == a.p[at])
        at++;
    exti__elf_finding(c, at, "%s: byte 0x%02x, not 0x%02x", region_name(&c->before, at), a.p[at],
                      b.p[at]);
}

/* Sorts the ranges and joins those that touch. */
static void join_ranges(struct elf_check *c)
{
    size_t kept = 0;

    if (c->range_count)
        qsort(c->ranges, c->range_count, sizeof *c->ranges, by_range_start);
    for (size_t i = 1; i < c->range_count; i++) {
        if (c->ranges[i].at > c->ranges[kept].end)
            c->ranges[++kept] = c->ranges[i];
        else if (c->ranges[i].end > c->ranges[kept].end)
            c->ranges[kept].end = c->ranges[i].end;
    }
    if (c->range_count)
        c->range_count = kept + 1;
}

/* Compares [at, end) outside the ranges.  *first is the first range that may overlap; calls come in
 * ascending order. */
static void compare_outside(struct elf_check *c, size_t *first, uint64_t at, uint64_t end)
{
    while (*first < c->range_count && c->ranges[*first].end <= at)
        ++*first;
    for (size_t i = *first; i < c->range_count && c->ranges[i].at < end && !c->findings.stop; i++) {
        compare_bytes(c, at, c->ranges[i].at < end ? c->ranges[i].at : end);
        at = c->ranges[i].end;
    }
    if (!c->findings.stop)
        compare_bytes(c, at, end);
}

int exti__elf_check_bytes(struct elf_check *c, struct exti_error *err)
{
    size_t first = 0;
    int rc;

    c->range_count = 0;
    rc = exclude_checked(c, err);
    if (rc)
        return rc;
    join_ranges(c);
    if (!c->plan)
        compare_outside(c, &first, 0, UINT64_MAX);
    for (size_t i = 0; c->plan && i < c->plan->count && !c->findings.stop; i++)
        compare_outside(c, &first, c->plan->patches[i].offset,
                        c->plan->patches[i].offset + c->plan->patches[i].size);
    return 0;
}
