/* dyld's rules for segments that exti__macho_open does not enforce (mach_o/Header.cpp:
 * validSegment, validSemanticsSegments).  A file that breaks their rules for bounds, overlap and
 * alignment cannot be opened. */
#include "macho/check/macho_check_segment.h"

#include <inttypes.h>
#include <string.h>

#include "macho/check/macho_check_report.h"

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

/* The initial protection that a segment's name requires; 0: any. */
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

static void check_pair(struct macho_check *c, const struct macho_file *f,
                       const struct macho_segment *s, const struct macho_segment *next)
{
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
        check_protection(c, f, &f->segments[i]);
        if (i)
            check_pair(c, f, &f->segments[i - 1], &f->segments[i]);
    }
    return 0;
}

/* Code relies on the alignment that the section declares. */
int exti__macho_rule_sections(struct macho_check *c, const struct macho_file *f,
                              struct exti_error *err)
{
    (void)err;
    for (size_t i = 0; i < f->section_count; i++) {
        const struct macho_section *x = &f->sections[i];

        if (x->align < 32 && x->addr & (((uint64_t)1 << x->align) - 1))
            exti__macho_broken(c, f, x->at, x->name,
                               "section %s: address 0x%" PRIx64 " is not aligned to 2^%u", x->name,
                               x->addr, x->align);
    }
    return 0;
}
