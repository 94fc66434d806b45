#include "macho/edit/macho_withhold.h"

#include <inttypes.h>

#include "base/error.h"
#include "macho/read/macho_withheld.h"
#include "macho/read/macho_word.h"

#define SEGMENT_NSECTS 64u
#define SECTION_FLAGS 64u

/* The bits that are to hold the old type must be free. */
static int check_sections(const struct macho_file *f, struct exti_error *err)
{
    for (size_t i = 0; i < f->section_count; i++) {
        const struct macho_section *s = &f->sections[i];

        if (exti__macho_type_runs(s->flags & SECTION_TYPE) && s->flags & EXTI_S_SPARE)
            return exti__fail(err, EXTI_E_UNSUPPORTED, f->file.base + s->at + SECTION_FLAGS,
                              "section %s,%s: has unknown attributes, 0x%" PRIx32
                              ", so its constructors cannot be withheld",
                              s->segment, s->name, s->flags & EXTI_S_SPARE);
    }
    return 0;
}

static void withhold_sections(uint8_t *segment)
{
    uint8_t *flags = segment + SEGMENT_COMMAND_64_SIZE + SECTION_FLAGS;

    for (uint32_t n = exti__macho_u32(segment + SEGMENT_NSECTS); n; n--, flags += SECTION_64_SIZE)
        exti__put_u32(flags, exti__macho_withheld_flags(exti__macho_u32(flags)), false);
}

int exti__macho_withhold(struct macho_build *b, struct exti_error *err)
{
    int rc;

    if (!(b->opts->flags & EXTI_RW_WITHHOLD))
        return 0;
    rc = check_sections(b->f, err);
    /* exti__macho_open has checked the sizes of segments, and no edit changes them. */
    for (size_t at = 0; !rc && at < b->commands.n; at += exti__macho_u32(b->commands.p + at + 4)) {
        uint8_t *p = b->commands.p + at;
        const uint32_t cmd = exti__macho_u32(p);

        if (cmd == LC_SEGMENT_64)
            withhold_sections(p);
        else
            exti__put_u32(p, exti__macho_withheld_command(cmd), false);
    }
    return rc;
}
