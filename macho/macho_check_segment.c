/* dyld's rules for segments (mach_o/Header.cpp: validSegment, validSemanticsSegments), and what mmap
 * needs. */
#include <inttypes.h>
#include <string.h>

#include "loader/base/checked.h"
#include "macho/macho_check_priv.h"

#define RW (VM_PROT_READ | VM_PROT_WRITE)
#define RX (VM_PROT_READ | VM_PROT_EXECUTE)

static uint64_t at_of(const struct macho_file *f, const struct macho_segment *s)
{
    return f->commands[s->command].at;
}

static bool has_split_info(const struct macho_file *f)
{
    return f->pieces[MACHO_SPLIT_INFO].present;
}

/* What a segment's name demands of its initial protection; 0: nothing. */
static uint32_t demanded(const struct macho_file *f, const struct macho_segment *s, uint32_t *sdk)
{
    const bool split = f->filetype == MH_DYLIB && has_split_info(f);

    *sdk = MACHO_SDK(26, 0);
    if (strcmp(s->name, "__TEXT") == 0) {
        *sdk = MACHO_SDK(10, 15);
        return RX;
    }
    if (strcmp(s->name, "__LINKEDIT") == 0) {
        *sdk = MACHO_SDK(10, 11);
        return VM_PROT_READ;
    }
    if (strcmp(s->name, "__DATA") == 0)
        return RW;
    return strcmp(s->name, "__DATA_CONST") == 0 && !split ? RW : 0;
}

static void check_protection(struct macho_check *c, const struct macho_file *f,
                             const struct macho_segment *s)
{
    uint32_t sdk, want = demanded(f, s, &sdk);
    const bool split = f->filetype == MH_DYLIB && has_split_info(f);

    if (s->initprot & ~(uint32_t)(RW | RX))
        exti__macho_broken(c, f, at_of(f, s), s->name,
                           "dyld validSegment: %s: initial protection 0x%x has unknown bits",
                           s->name, s->initprot);
    if (want && s->initprot != want && exti__macho_gate(f, sdk))
        exti__macho_broken(c, f, at_of(f, s), s->name,
                           "dyld validSegment (SDK %u.%u and later): %s: initial protection 0x%x, "
                           "not 0x%x",
                           sdk >> 16, sdk >> 8 & 0xff, s->name, s->initprot, want);
    if (strcmp(s->name, "__DATA_CONST") == 0 && !split && !(s->flags & SG_READ_ONLY) &&
        exti__macho_gate(f, MACHO_SDK(26, 0)))
        exti__macho_broken(c, f, at_of(f, s), s->name,
                           "dyld validSegment (SDK 26.0 and later): %s lacks SG_READ_ONLY",
                           s->name);
}

static void check_sections(struct macho_check *c, const struct macho_file *f,
                           const struct macho_segment *s)
{
    for (size_t i = s->first_section; i < s->first_section + s->section_count; i++) {
        const struct macho_section *x = &f->sections[i];
        uint64_t end;

        if (x->addr < s->vmaddr || !exti__add(x->addr, x->size, &end) ||
            x->addr - s->vmaddr > s->vmsize || x->size > s->vmsize - (x->addr - s->vmaddr))
            exti__macho_broken(c, f, x->at, x->name,
                               "dyld validSegment (SDK 11.0 and later): section %s lies outside "
                               "segment %s",
                               x->name, s->name);
    }
}

static void check_segment(struct macho_check *c, const struct macho_file *f,
                          const struct macho_segment *s)
{
    uint64_t end;

    if (s->fileoff > f->file.n || s->filesize > f->file.n - s->fileoff)
        exti__macho_broken(c, f, at_of(f, s), s->name,
                           "dyld validSegment: %s: file offset 0x%" PRIx64 " and size 0x%" PRIx64
                           " reach past the file's end at 0x%zx",
                           s->name, s->fileoff, s->filesize, f->file.n);
    if (s->filesize > s->vmsize && (s->vmsize || s->initprot))
        exti__macho_broken(c, f, at_of(f, s), s->name,
                           "dyld validSegment: %s: 0x%" PRIx64
                           " bytes of the file, but only 0x%" PRIx64 " of memory",
                           s->name, s->filesize, s->vmsize);
    if (!exti__add(s->vmaddr, s->vmsize, &end))
        exti__macho_broken(c, f, at_of(f, s), s->name,
                           "dyld validSegment: %s: its addresses wrap around", s->name);
    check_protection(c, f, s);
    if (exti__macho_gate(f, MACHO_SDK(11, 0)))
        check_sections(c, f, s);
}

static bool overlap(uint64_t at, uint64_t n, uint64_t at2, uint64_t n2)
{
    return n && n2 && (at < at2 ? at2 - at < n : at - at2 < n2);
}

static void check_pair(struct macho_check *c, const struct macho_file *f,
                       const struct macho_segment *s, const struct macho_segment *next)
{
    if (overlap(s->vmaddr, s->vmsize, next->vmaddr, next->vmsize))
        exti__macho_broken(c, f, at_of(f, next), next->name,
                           "dyld validSemanticsSegments: %s and %s overlap in memory", s->name,
                           next->name);
    if (overlap(s->fileoff, s->filesize, next->fileoff, next->filesize))
        exti__macho_broken(c, f, at_of(f, next), next->name,
                           "dyld validSemanticsSegments: %s and %s overlap in the file", s->name,
                           next->name);
    if (strcmp(s->name, next->name) == 0 && exti__macho_gate(f, MACHO_SDK(26, 0)))
        exti__macho_broken(c, f, at_of(f, next), next->name,
                           "dyld validSemanticsSegments (SDK 26.0 and later): two segments %s",
                           s->name);
    if (!exti__macho_gate(f, MACHO_SDK(10, 15)))
        return;
    if (next->vmaddr < s->vmaddr)
        exti__macho_broken(c, f, at_of(f, next), next->name,
                           "dyld validSemanticsSegments (SDK 10.15 and later): %s has a lower "
                           "address than %s before it",
                           next->name, s->name);
    if (s->filesize && next->filesize && next->fileoff < s->fileoff)
        exti__macho_broken(c, f, at_of(f, next), next->name,
                           "dyld validSemanticsSegments (SDK 10.15 and later): %s has a lower file "
                           "offset than %s before it",
                           next->name, s->name);
}

int exti__macho_rule_segments(struct macho_check *c, const struct macho_file *f,
                              struct exti_error *err)
{
    (void)err;
    for (size_t i = 0; i < f->segment_count; i++) {
        check_segment(c, f, &f->segments[i]);
        for (size_t j = 0; j < i; j++)
            check_pair(c, f, &f->segments[j], &f->segments[i]);
    }
    if (f->text->fileoff || f->text->filesize < f->commands_end ||
        f->text->vmsize < f->commands_end)
        exti__macho_broken(c, f, at_of(f, f->text), "__TEXT",
                           "dyld validSemanticsSegments: __TEXT does not hold the load commands, "
                           "which end at 0x%" PRIx64,
                           f->commands_end);
    return 0;
}

/* What dyld leaves to the kernel's mmap, and what would overwrite code. */
int exti__macho_rule_layout(struct macho_check *c, const struct macho_file *f,
                            struct exti_error *err)
{
    (void)err;
    for (size_t i = 0; i < f->segment_count; i++) {
        const struct macho_segment *s = &f->segments[i];

        if (s->vmaddr % f->page || (s->filesize && s->fileoff % f->page))
            exti__macho_broken(c, f, at_of(f, s), s->name,
                               "%s: address 0x%" PRIx64 " or file offset 0x%" PRIx64
                               " is no multiple of the page size 0x%" PRIx64,
                               s->name, s->vmaddr, s->fileoff, f->page);
    }
    if (f->commands_end > f->room_end)
        exti__macho_broken(c, f, f->room_end, "",
                           "the load commands end at 0x%" PRIx64 ", over what begins at 0x%" PRIx64,
                           f->commands_end, f->room_end);
    for (size_t i = 0; i < f->section_count; i++) {
        const struct macho_section *x = &f->sections[i];

        if (x->align < 32 && x->addr & (((uint64_t)1 << x->align) - 1))
            exti__macho_broken(c, f, x->at, x->name,
                               "section %s: address 0x%" PRIx64 " is not aligned to 2^%u", x->name,
                               x->addr, x->align);
    }
    return 0;
}
