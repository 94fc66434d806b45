/* The kernel and the loader map a file by its ELF header and its program headers. */
#include "elf/check/elf_check_layout.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "elf/check/elf_check_block.h"

static uint64_t header_at(const struct elf_file *f, size_t i)
{
    return f->ehdr.e_phoff + i * exti__elf_phdr_size(f);
}

static bool is_note(const GElf_Phdr *ph)
{
    return ph->p_type == PT_NOTE || ph->p_type == PT_GNU_PROPERTY;
}

static bool same_header(const GElf_Phdr *a, const GElf_Phdr *b)
{
    return a->p_type == b->p_type && a->p_flags == b->p_flags && a->p_offset == b->p_offset &&
           a->p_vaddr == b->p_vaddr && a->p_paddr == b->p_paddr && a->p_filesz == b->p_filesz &&
           a->p_memsz == b->p_memsz && a->p_align == b->p_align;
}

/* ---- matching the headers of the copy to those of the original ------------------------------- */

/* Whether a header is neither a PT_LOAD nor unused. */
static bool is_listed(const GElf_Phdr *ph)
{
    return ph->p_type != PT_LOAD && ph->p_type != PT_NULL;
}

/* Whether the walk along both lists pairs this header.  The one PT_DYNAMIC needs no pairing and may
 * change its place in the list. */
static bool is_paired(const GElf_Phdr *ph, bool loads)
{
    if (loads)
        return ph->p_type == PT_LOAD;
    return is_listed(ph) && ph->p_type != PT_DYNAMIC;
}

static size_t next_paired(const struct elf_file *f, size_t i, bool loads)
{
    while (i < f->phnum && !is_paired(&f->phdr[i], loads))
        i++;
    return i;
}

/* Whether a new PT_LOAD may take the slot of this header: a PT_NOTE, because the sections stay, or
 * PT_PHDR in a file that no kernel starts, because loaders use e_phoff. */
static bool may_give_slot(const struct elf_file *f, size_t i)
{
    if (f->phdr[i].p_type == PT_NOTE)
        return true;
    if (f->phdr[i].p_type != PT_PHDR)
        return false;
    for (size_t k = 0; k < f->phnum; k++)
        if (f->phdr[k].p_type == PT_INTERP)
            return false;
    return true;
}

/* Whether header `i` of the original gave its slot away; if not, it is header `j` of the copy. */
static bool gave_slot(const struct elf_check *c, size_t i, size_t j)
{
    const struct elf_file *b = &c->before, *a = &c->after;
    size_t next = next_paired(b, i + 1, false);

    if (!may_give_slot(b, i))
        return false;
    if (j >= a->phnum || b->phdr[i].p_type != a->phdr[j].p_type)
        return true;
    return !same_header(&b->phdr[i], &a->phdr[j]) && next < b->phnum &&
           same_header(&b->phdr[next], &a->phdr[j]);
}

static bool has_given_slot(const struct elf_check *c)
{
    return c->new_load != ELF_NO_MATCH && c->after.phnum <= c->before.phnum;
}

/* Both lists keep their order, so a walk along both pairs them.  PT_LOADs are paired separately;
 * only the last may be new, which exti__elf_check_loads verifies. */
void exti__elf_match_headers(struct elf_check *c)
{
    const struct elf_file *b = &c->before, *a = &c->after;
    size_t i = 0, j;
    bool given = false;

    c->new_load = ELF_NO_MATCH;
    for (j = 0; j < a->phnum; j++)
        c->match[j] = ELF_NO_MATCH;
    c->match[a->dynamic_phdr] = b->dynamic_phdr;
    for (j = next_paired(a, 0, true); j < a->phnum; j = next_paired(a, j + 1, true)) {
        i = next_paired(b, i, true);
        if (i < b->phnum)
            c->match[j] = i++;
        else
            c->new_load = j;
    }
    i = next_paired(b, 0, false);
    j = next_paired(a, 0, false);
    while (i < b->phnum && j < a->phnum) {
        if (has_given_slot(c) && !given && gave_slot(c, i, j)) {
            given = true;
        } else {
            if (b->phdr[i].p_type == a->phdr[j].p_type)
                c->match[j] = i;
            j = next_paired(a, j + 1, false);
        }
        i = next_paired(b, i + 1, false);
    }
}

/* ---- the checks ------------------------------------------------------------------------------ */

int exti__elf_check_header(struct elf_check *c, struct exti_error *err)
{
    const size_t phnum_at = c->before.is64 ? 56 : 44, size = c->before.is64 ? 64 : 52;
    const uint8_t *b = c->before.file.p, *a = c->after.file.p;

    (void)err;
    for (size_t i = 0; i < size; i++)
        if (a[i] != b[i] && i != phnum_at && i != phnum_at + 1)
            exti__elf_finding(c, i, "ELF header: byte %zu is 0x%02x, not 0x%02x", i, a[i], b[i]);
    return 0;
}

int exti__elf_check_header_count(struct elf_check *c, struct exti_error *err)
{
    (void)err;
    if (c->after.phnum < c->before.phnum || c->after.phnum > c->before.phnum + 1)
        exti__elf_finding(c, c->before.is64 ? 56 : 44, "e_phnum: %zu, not %zu or one more",
                          c->after.phnum, c->before.phnum);
    return 0;
}

static uint64_t table_size(const struct elf_file *f)
{
    return f->phnum * exti__elf_phdr_size(f);
}

/* Whether header `j` of the copy is a grown block that PT_DYNAMIC moved to. */
static bool has_moved_dynamic(const struct elf_check *c, size_t j)
{
    const GElf_Phdr *dyn = &c->after.phdr[c->after.dynamic_phdr];

    return exti__elf_is_grown_block(c, j) &&
           dyn->p_offset != c->before.phdr[c->before.dynamic_phdr].p_offset &&
           dyn->p_offset >= c->after.phdr[j].p_offset;
}

/* Whether PT_DYNAMIC moved, or may have grown where it is. */
static bool is_dynamic_laid_out(const struct elf_check *c, const GElf_Phdr *a, const GElf_Phdr *b)
{
    return a->p_type == PT_DYNAMIC &&
           (a->p_offset != b->p_offset || exti__elf_in_grown_block(c, b->p_offset));
}

/* Whether header `j` of the copy equals its original, `b`.  Leaves out the sizes of a PT_LOAD,
 * which the check of segment growth covers, the addresses of notes, which the check of notes
 * covers, and PT_GNU_STACK, which has a check of its own. */
static bool is_kept(const struct elf_check *c, size_t j, const GElf_Phdr *b)
{
    GElf_Phdr a = c->after.phdr[j];

    if (a.p_type == PT_GNU_STACK)
        return true;
    if (a.p_type == PT_LOAD) {
        a.p_filesz = b->p_filesz;
        a.p_memsz = b->p_memsz;
        if (has_moved_dynamic(c, j))
            a.p_flags &= b->p_flags | ~(uint32_t)PF_W;
    } else if (is_note(&a) || (a.p_type == PT_DYNAMIC && a.p_offset != b->p_offset)) {
        a.p_offset = b->p_offset;
        a.p_vaddr = b->p_vaddr;
        a.p_paddr = b->p_paddr;
    }
    if (is_dynamic_laid_out(c, &c->after.phdr[j], b) ||
        (a.p_type == PT_PHDR && a.p_filesz == table_size(&c->after) &&
         b->p_filesz == table_size(&c->before))) {
        a.p_filesz = b->p_filesz;
        a.p_memsz = b->p_memsz;
    }
    return same_header(&a, b);
}

static void report_lost_headers(struct elf_check *c)
{
    const struct elf_file *b = &c->before;
    bool given = !has_given_slot(c);

    for (size_t i = 0; i < b->phnum; i++) {
        size_t j = 0;

        if (b->phdr[i].p_type == PT_NULL || b->phdr[i].p_type == PT_GNU_STACK)
            continue;
        while (j < c->after.phnum && c->match[j] != i)
            j++;
        if (j < c->after.phnum)
            continue;
        if (!given && may_give_slot(b, i)) {
            given = true;
            continue;
        }
        exti__elf_finding(c, header_at(&c->after, i),
                          "program header %zu of the original, type 0x%x at 0x%" PRIx64
                          ", is missing or out of order",
                          i, b->phdr[i].p_type, b->phdr[i].p_vaddr);
    }
}

static void report_changed_header(struct elf_check *c, size_t j, const GElf_Phdr *old)
{
    const GElf_Phdr *ph = &c->after.phdr[j];

    exti__elf_finding(c, header_at(&c->after, j),
                      "program header %zu, type 0x%x: offset 0x%" PRIx64 ", address 0x%" PRIx64
                      ", sizes 0x%" PRIx64 " 0x%" PRIx64 ", flags %u, not 0x%" PRIx64 ", 0x%" PRIx64
                      ", 0x%" PRIx64 " 0x%" PRIx64 ", %u",
                      j, ph->p_type, ph->p_offset, ph->p_vaddr, ph->p_filesz, ph->p_memsz,
                      ph->p_flags, old->p_offset, old->p_vaddr, old->p_filesz, old->p_memsz,
                      old->p_flags);
}

static void check_program_header(struct elf_check *c, size_t j)
{
    const GElf_Phdr *ph = &c->after.phdr[j], *old = exti__elf_original(c, j);

    if (old && !is_kept(c, j, old))
        report_changed_header(c, j, old);
    if (!old && ph->p_type != PT_NULL && ph->p_type != PT_GNU_STACK && j != c->new_load)
        exti__elf_finding(c, header_at(&c->after, j),
                          "program header %zu: type 0x%x is not in the original", j, ph->p_type);
}

int exti__elf_check_program_headers(struct elf_check *c, struct exti_error *err)
{
    (void)err;
    for (size_t j = 0; j < c->after.phnum; j++)
        check_program_header(c, j);
    report_lost_headers(c);
    return 0;
}

/* The flags of PT_GNU_STACK, or all ones when there is none.  *at is its file offset. */
static uint32_t stack_flags(const struct elf_file *f, uint64_t *at)
{
    for (size_t i = 0; i < f->phnum; i++) {
        if (f->phdr[i].p_type != PT_GNU_STACK)
            continue;
        *at = header_at(f, i);
        return f->phdr[i].p_flags;
    }
    *at = f->ehdr.e_phoff;
    return UINT32_MAX;
}

/* Loading a file without PT_GNU_STACK makes the stack of the whole process executable. */
int exti__elf_check_stack(struct elf_check *c, struct exti_error *err)
{
    uint64_t was_at, at;
    uint32_t was = stack_flags(&c->before, &was_at), flags = stack_flags(&c->after, &at);

    (void)err;
    if (flags != was)
        exti__elf_finding(c, at, "PT_GNU_STACK: flags 0x%x, not 0x%x (all ones: no such header)",
                          flags, was);
    return 0;
}

/* Every loader with pages of up to `page` bytes must map the new PT_LOAD without touching a page of
 * the previous one, `prev`. */
static void check_new_load(struct elf_check *c, const GElf_Phdr *ph, const GElf_Phdr *prev)
{
    const uint64_t at = header_at(&c->after, c->new_load), page = exti__elf_page_size(&c->after);
    uint64_t end;

    if (ph->p_filesz != ph->p_memsz || !ph->p_filesz)
        exti__elf_finding(c, at,
                          "new PT_LOAD: p_filesz 0x%" PRIx64 " and p_memsz 0x%" PRIx64
                          " should be equal and not 0",
                          ph->p_filesz, ph->p_memsz);
    if (ph->p_flags != PF_R && ph->p_flags != (PF_R | PF_W))
        exti__elf_finding(c, at, "new PT_LOAD: flags %u, not R or RW", ph->p_flags);
    if (ph->p_align < page || (ph->p_vaddr - ph->p_offset) % page)
        exti__elf_finding(c, at,
                          "new PT_LOAD: address 0x%" PRIx64 ", offset 0x%" PRIx64
                          " and p_align 0x%" PRIx64 " do not fit pages of 0x%" PRIx64,
                          ph->p_vaddr, ph->p_offset, ph->p_align, page);
    end = prev->p_vaddr + prev->p_memsz;
    if (!exti__align(end, page, &end) || (ph->p_vaddr & ~(page - 1)) < end)
        exti__elf_finding(c, at,
                          "new PT_LOAD: shares a page with the one before: 0x%" PRIx64
                          ", not 0x%" PRIx64 " or more",
                          ph->p_vaddr, end);
}

/* Loaders that relocate PT_DYNAMIC in place write to it if its flags allow that. */
static void check_dynamic_writable(struct elf_check *c)
{
    const struct elf_file *a = &c->after;
    const GElf_Phdr *dyn = &a->phdr[a->dynamic_phdr];

    if (dyn->p_offset == c->before.phdr[c->before.dynamic_phdr].p_offset)
        return;
    for (size_t i = 0; i < a->phnum; i++) {
        const GElf_Phdr *ph = &a->phdr[i];

        if (ph->p_type == PT_LOAD && dyn->p_vaddr >= ph->p_vaddr &&
            dyn->p_vaddr - ph->p_vaddr < ph->p_memsz && dyn->p_flags & PF_W &&
            !(ph->p_flags & PF_W))
            exti__elf_finding(c, header_at(a, i),
                              "PT_LOAD: flags %u, not writable like the PT_DYNAMIC in it, %u",
                              ph->p_flags, dyn->p_flags);
    }
}

/* llvm-strip moves a segment out of its PT_LOAD `j` if its header comes before that of the
 * PT_LOAD. */
static void check_listed_behind(struct elf_check *c, size_t i, size_t j)
{
    const GElf_Phdr *ph = &c->after.phdr[i], *load = &c->after.phdr[j];

    if (is_listed(ph) && ph->p_filesz && ph->p_vaddr >= load->p_vaddr &&
        ph->p_vaddr - load->p_vaddr < load->p_memsz)
        exti__elf_finding(c, header_at(&c->after, i),
                          "program header %zu, type 0x%x, comes before its new PT_LOAD %zu", i,
                          ph->p_type, j);
}

/* Opening checked for ascending order, congruence modulo p_align and ends within the file. */
int exti__elf_check_loads(struct elf_check *c, struct exti_error *err)
{
    const struct elf_file *a = &c->after;
    const GElf_Phdr *prev = NULL;

    (void)err;
    for (size_t i = 0; i < a->phnum && i != c->new_load; i++)
        if (a->phdr[i].p_type == PT_LOAD)
            prev = &a->phdr[i];
    if (c->new_load != ELF_NO_MATCH) {
        assert(prev); /* the original has PT_LOADs, and theirs come first */
        check_new_load(c, &a->phdr[c->new_load], prev);
        for (size_t i = 0; i < c->new_load; i++)
            check_listed_behind(c, i, c->new_load);
    }
    for (size_t j = 0; j < a->phnum; j++)
        if (has_moved_dynamic(c, j) && a->dynamic_phdr < j)
            check_listed_behind(c, a->dynamic_phdr, j);
    check_dynamic_writable(c);
    return 0;
}

static bool range_in(uint64_t at, uint64_t size, uint64_t from, uint64_t room)
{
    return at >= from && at - from <= room && size <= room - (at - from);
}

/* Whether a segment lies in the file part of a PT_LOAD, at the same distance in memory and in the
 * file.  PT_GNU_RELRO may reach past the file part. */
static bool is_contained(const struct elf_file *f, const GElf_Phdr *ph)
{
    const bool relro = ph->p_type == PT_GNU_RELRO;

    for (size_t i = 0; i < f->phnum; i++) {
        const GElf_Phdr *l = &f->phdr[i];

        if (l->p_type == PT_LOAD &&
            range_in(ph->p_vaddr, relro ? ph->p_memsz : ph->p_filesz, l->p_vaddr,
                     relro ? l->p_memsz : l->p_filesz) &&
            ph->p_vaddr - l->p_vaddr == ph->p_offset - l->p_offset)
            return true;
    }
    return false;
}

static bool table_is_mapped(const struct elf_file *f)
{
    for (size_t i = 0; i < f->phnum; i++)
        if (f->phdr[i].p_type == PT_LOAD &&
            range_in(f->ehdr.e_phoff, table_size(f), f->phdr[i].p_offset, f->phdr[i].p_filesz))
            return true;
    return false;
}

/* musl and users of dl_iterate_phdr, such as C++ exceptions, read the headers from memory. */
int exti__elf_check_contained(struct elf_check *c, struct exti_error *err)
{
    const struct elf_file *b = &c->before, *a = &c->after;

    (void)err;
    for (size_t j = 0; j < a->phnum; j++) {
        const GElf_Phdr *ph = &a->phdr[j], *old = exti__elf_original(c, j);

        if (is_listed(ph) && ph->p_type != PT_GNU_STACK && old && is_contained(b, old) &&
            !is_contained(a, ph))
            exti__elf_finding(c, header_at(a, j),
                              "program header %zu, type 0x%x: 0x%" PRIx64 " bytes at 0x%" PRIx64
                              " lie in no PT_LOAD",
                              j, ph->p_type, ph->p_filesz, ph->p_vaddr);
    }
    if (table_is_mapped(b) && !table_is_mapped(a))
        exti__elf_finding(c, a->ehdr.e_phoff,
                          "program header table: %zu headers at 0x%" PRIx64 " lie in no PT_LOAD",
                          a->phnum, a->ehdr.e_phoff);
    return 0;
}

/* A moved note segment must have the same contents: tools find the build-id through it. */
int exti__elf_check_notes(struct elf_check *c, struct exti_error *err)
{
    (void)err;
    for (size_t j = 0; j < c->after.phnum; j++) {
        const GElf_Phdr *a = &c->after.phdr[j], *b = exti__elf_original(c, j);
        struct exti_span was, now;

        if (!is_note(a) || !b)
            continue;
        if (a->p_offset == b->p_offset && a->p_vaddr == b->p_vaddr && a->p_filesz == b->p_filesz)
            continue;
        if (exti__span_sub(c->before.file, b->p_offset, b->p_filesz, "", &was, NULL))
            continue;
        if (exti__span_sub(c->after.file, a->p_offset, b->p_filesz, "", &now, NULL) ||
            memcmp(was.p, now.p, was.n) != 0)
            exti__elf_finding(c, a->p_offset,
                              "PT_NOTE: its 0x%" PRIx64 " bytes differ from those at 0x%" PRIx64
                              " of the original",
                              b->p_filesz, b->p_offset);
    }
    return 0;
}
