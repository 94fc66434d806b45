/* New contents may only lie in unused bytes of the original or where a structure moved away. */
#include "elf/check/elf_check_room.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "elf/check/elf_check_hash.h"

static struct elf_range range_of(uint64_t at, uint64_t size)
{
    struct elf_range r = {at, UINT64_MAX};

    exti__add(at, size, &r.end);
    return r;
}

static struct elf_range part_range(const struct elf_part *part, uint64_t size)
{
    return part->present ? range_of(part->s.base, size) : (struct elf_range){0, 0};
}

/* Gives the range of the `k`th structure with a known place; false past the last. */
static bool structure_range(const struct elf_file *f, size_t k, struct elf_range *out)
{
    const struct elf_range fixed[] = {
        {0, f->is64 ? 64 : 52},
        range_of(f->ehdr.e_phoff, f->phnum * exti__elf_phdr_size(f)),
        range_of(f->shdr ? f->ehdr.e_shoff : 0, f->shnum * exti__elf_shdr_size(f)),
        part_range(&f->strtab, f->strtab.s.n),
        part_range(&f->symtab, f->symtab.s.n),
        part_range(&f->versym, f->versym.s.n),
        part_range(&f->hash, exti__elf_sysv_hash_size(f)),
        part_range(&f->gnu_hash, exti__elf_gnu_hash_size(f)),
    };
    const size_t n = sizeof fixed / sizeof *fixed;

    *out = (struct elf_range){0, 0};
    if (k < n) {
        *out = fixed[k];
    } else if (k - n < f->phnum) {
        const GElf_Phdr *ph = &f->phdr[k - n];

        if (ph->p_type != PT_LOAD && ph->p_type != PT_NULL && ph->p_type != PT_GNU_STACK &&
            ph->p_type != PT_GNU_RELRO)
            *out = range_of(ph->p_offset, ph->p_filesz);
    } else if (k - n - f->phnum < f->shnum) {
        const GElf_Shdr *sh = &f->shdr[k - n - f->phnum];

        if (sh->sh_type != SHT_NULL && sh->sh_type != SHT_NOBITS)
            *out = range_of(sh->sh_offset, sh->sh_size);
    } else {
        return false;
    }
    return true;
}

/* Gives the `k`th range that a hash table or a note left; false past the last. */
static bool vacated_range(const struct elf_check *c, size_t k, struct elf_range *out)
{
    const struct elf_file *b = &c->before, *a = &c->after;

    *out = (struct elf_range){0, 0};
    if (k == 0) {
        if (b->hash.present && a->hash.present && b->hash.vaddr != a->hash.vaddr)
            *out = part_range(&b->hash, exti__elf_sysv_hash_size(b));
    } else if (k == 1) {
        if (b->gnu_hash.present && a->gnu_hash.present && b->gnu_hash.vaddr != a->gnu_hash.vaddr)
            *out = part_range(&b->gnu_hash, exti__elf_gnu_hash_size(b));
    } else if (k - 2 < a->phnum) {
        const size_t j = k - 2, i = c->match[j];

        if (i != ELF_NO_MATCH && a->phdr[j].p_type != PT_LOAD && a->phdr[j].p_type != PT_DYNAMIC &&
            a->phdr[j].p_offset != b->phdr[i].p_offset)
            *out = range_of(b->phdr[i].p_offset, b->phdr[i].p_filesz);
    } else {
        return false;
    }
    return true;
}

static bool range_holds(struct elf_range r, uint64_t at)
{
    return at >= r.at && at < r.end;
}

/* Lowers *end to where `r` starts, if that is past `at`. */
static void clip_end(struct elf_range r, uint64_t at, uint64_t *end)
{
    if (r.at < r.end && r.at > at && r.at < *end)
        *end = r.at;
}

/* The end of the vacated range that `at` is in, else `at`.  A range includes the zeros that align
 * the structure behind it.  Lowers *next to the start of a later vacated range. */
static uint64_t skip_vacated(const struct elf_check *c, uint64_t at, uint64_t *next)
{
    const struct exti_span file = c->before.file;
    struct elf_range r;

    for (size_t k = 0; vacated_range(c, k, &r); k++) {
        while (r.at < r.end && r.end < file.n && r.end % 8 && !file.p[r.end])
            r.end++;
        if (range_holds(r, at))
            return r.end;
        clip_end(r, at, next);
    }
    return at;
}

/* Whether a PT_LOAD maps the byte at `at`.  Lowers *next to the end of that PT_LOAD, or to the
 * start of a later one. */
static bool is_mapped(const struct elf_file *f, uint64_t at, uint64_t *next)
{
    for (size_t i = 0; i < f->phnum; i++) {
        struct elf_range r = range_of(f->phdr[i].p_offset, f->phdr[i].p_filesz);

        if (f->phdr[i].p_type != PT_LOAD)
            continue;
        if (range_holds(r, at)) {
            clip_end((struct elf_range){r.end, UINT64_MAX}, at, next);
            return true;
        }
        clip_end(r, at, next);
    }
    return false;
}

/* Linkers pad with zeros, patchelf with Z and X. */
static bool is_filler(uint8_t byte)
{
    return !byte || byte == 'Z' || byte == 'X';
}

/* The first byte in [at, end) that the original uses, or EXTI_NO_OFFSET. */
static uint64_t first_used(const struct elf_check *c, uint64_t at, uint64_t end)
{
    const struct elf_file *b = &c->before;

    if (end > b->file.n)
        end = b->file.n;
    while (at < end) {
        uint64_t next = end, past = skip_vacated(c, at, &next);
        struct elf_range r;

        if (past != at) {
            at = past;
            continue;
        }
        /* Without section headers, mapped bytes that look like padding may be data. */
        if (is_mapped(b, at, &next) && !b->shdr)
            return at;
        for (size_t k = 0; structure_range(b, k, &r); k++) {
            if (range_holds(r, at))
                return at;
            clip_end(r, at, &next);
        }
        for (; at < next; at++)
            if (!is_filler(b->file.p[at]))
                return at;
    }
    return EXTI_NO_OFFSET;
}

/* Reports if the original uses [at, end).  `what` names the new contents there. */
static void check_unused(struct elf_check *c, uint64_t at, uint64_t end, const char *what)
{
    uint64_t used = first_used(c, at, end);

    if (used != EXTI_NO_OFFSET)
        exti__elf_finding(c, used,
                          "%s at 0x%" PRIx64 " to 0x%" PRIx64
                          ": overwrites bytes that the original uses",
                          what, at, end);
}

int exti__elf_check_table_growth(struct elf_check *c, struct exti_error *err)
{
    const struct elf_file *b = &c->before, *a = &c->after;
    const uint64_t size = exti__elf_phdr_size(b), at = b->ehdr.e_phoff + b->phnum * size;

    (void)err;
    if (a->phnum > b->phnum)
        check_unused(c, at, at + (a->phnum - b->phnum) * size, "program header table: new entry");
    for (size_t j = 0; j < a->phnum; j++) {
        const GElf_Phdr *ph = &a->phdr[j], *old = exti__elf_original(c, j);

        if (!old || ph->p_type == PT_LOAD || ph->p_type == PT_DYNAMIC ||
            ph->p_offset == old->p_offset)
            continue;
        check_unused(c, ph->p_offset, range_of(ph->p_offset, ph->p_filesz).end, "moved note");
    }
    return 0;
}

/* A PT_LOAD may only have grown into the padding behind it. */
static void check_segment_growth(struct elf_check *c, size_t j, const GElf_Phdr *old)
{
    const struct elf_file *a = &c->after;
    const GElf_Phdr *ph = &a->phdr[j];
    const uint64_t at = a->ehdr.e_phoff + j * exti__elf_phdr_size(a), page = exti__elf_page_size(a);
    const struct elf_range grown = {old->p_offset + old->p_filesz, ph->p_offset + ph->p_filesz};

    if (ph->p_filesz < old->p_filesz || ph->p_memsz < old->p_memsz ||
        ph->p_filesz - old->p_filesz != ph->p_memsz - old->p_memsz ||
        old->p_filesz != old->p_memsz) {
        exti__elf_finding(c, at,
                          "PT_LOAD at 0x%" PRIx64 ": sizes 0x%" PRIx64 " 0x%" PRIx64
                          ", not 0x%" PRIx64 " 0x%" PRIx64 ", nor both larger by the same amount",
                          ph->p_vaddr, ph->p_filesz, ph->p_memsz, old->p_filesz, old->p_memsz);
        return;
    }
    check_unused(c, grown.at, grown.end, "PT_LOAD: new part");
    for (size_t i = 0; i < a->phnum; i++) {
        const GElf_Phdr *other = &a->phdr[i];
        struct elf_range file = range_of(other->p_offset, other->p_filesz);

        if (other->p_type != PT_LOAD || i == j)
            continue;
        if ((file.at < grown.end && grown.at < file.end && file.at < file.end) ||
            (other->p_vaddr > ph->p_vaddr &&
             ph->p_vaddr + ph->p_memsz > (other->p_vaddr & ~(page - 1))))
            exti__elf_finding(c, at,
                              "PT_LOAD at 0x%" PRIx64 ": its new end 0x%" PRIx64
                              " runs into the PT_LOAD at 0x%" PRIx64,
                              ph->p_vaddr, ph->p_vaddr + ph->p_memsz, other->p_vaddr);
    }
}

int exti__elf_check_load_growth(struct elf_check *c, struct exti_error *err)
{
    const struct elf_file *a = &c->after;

    (void)err;
    for (size_t j = 0; j < a->phnum; j++) {
        const GElf_Phdr *old = exti__elf_original(c, j);

        if (old && a->phdr[j].p_type == PT_LOAD &&
            (a->phdr[j].p_filesz != old->p_filesz || a->phdr[j].p_memsz != old->p_memsz))
            check_segment_growth(c, j, old);
    }
    return 0;
}

/* Appended bytes must be mapped, or be padding. */
int exti__elf_check_tail(struct elf_check *c, struct exti_error *err)
{
    const struct elf_file *b = &c->before, *a = &c->after;
    uint64_t at = b->file.n;

    (void)err;
    if (a->file.n < b->file.n)
        exti__elf_finding(c, a->file.n, "end of file: %zu bytes, not %zu or more", a->file.n,
                          b->file.n);
    if (c->new_load != ELF_NO_MATCH && a->phdr[c->new_load].p_offset < b->file.n)
        exti__elf_finding(c, a->ehdr.e_phoff + c->new_load * exti__elf_phdr_size(a),
                          "new PT_LOAD: offset 0x%" PRIx64 " is before the original's end 0x%zx",
                          a->phdr[c->new_load].p_offset, b->file.n);
    while (at < a->file.n && !c->findings.stop) {
        uint64_t next = a->file.n;

        if (is_mapped(a, at, &next))
            at = next;
        for (; at < next && !c->findings.stop; at++)
            if (a->file.p[at])
                exti__elf_finding(c, at, "end of file: byte 0x%02x in no PT_LOAD, not 0",
                                  a->file.p[at]);
    }
    return 0;
}
