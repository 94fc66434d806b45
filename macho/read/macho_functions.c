/* Follows dyld (MachOAnalyzer::forEachInitializer and forEachTerminator). */
#include "macho/read/macho_functions.h"

#include <string.h>

#include "macho/read/macho_withheld.h"

#define NO_TYPE UINT32_MAX /* LC_ROUTINES_64 instead of sections */

struct walk {
    struct exti_span image;
    uint64_t start; /* the address that __TEXT was linked for */
    uint32_t type;  /* of the sections to look for */
    int (*each)(void *user, const struct exti_macho_function *f);
    void *user;
    bool ended;
};

static void report_function(struct walk *w, uintptr_t address, bool is_withheld)
{
    const struct exti_macho_function f = {address, w->type == S_MOD_TERM_FUNC_POINTERS,
                                          is_withheld};

    w->ended = w->ended || w->each(w->user, &f);
}

/* Offsets count from the header; pointers have been rebased. */
static void walk_section(struct walk *w, uint64_t addr, uint64_t size, uint32_t flags)
{
    const bool offsets = w->type == S_INIT_FUNC_OFFSETS;
    const size_t unit = offsets ? 4 : 8;
    struct exti_span s;
    struct exti_cur c;

    if (exti__span_sub(w->image, addr - w->start, size, "", &s, NULL))
        return;
    c = exti__cur(s, false);
    for (uint64_t i = 0; i < size / unit && !w->ended; i++) {
        const uintptr_t address =
            offsets ? (uintptr_t)w->image.p + exti__cur_u32(&c) : (uintptr_t)exti__cur_u64(&c);

        report_function(w, address, exti__macho_section_is_withheld(flags));
    }
}

static void walk_sections(struct walk *w, struct exti_cur *c)
{
    uint32_t count;

    exti__cur_skip(c, SEGMENT_COMMAND_64_SIZE - 16);
    count = exti__cur_u32(c);
    exti__cur_skip(c, 4);
    for (uint32_t i = 0; i < count && !c->failed && !w->ended; i++) {
        uint64_t addr, size;
        uint32_t flags;

        exti__cur_skip(c, 32);
        addr = exti__cur_u64(c);
        size = exti__cur_u64(c);
        exti__cur_skip(c, 16);
        flags = exti__cur_u32(c);
        exti__cur_skip(c, 12);
        if (!c->failed && exti__macho_section_type(flags) == w->type)
            walk_section(w, addr, size, flags);
    }
}

static void walk_routine(struct walk *w, uint32_t cmd, struct exti_cur *c)
{
    const uint64_t address = exti__cur_u64(c);

    if (!c->failed)
        report_function(w, (uintptr_t)w->image.p + (uintptr_t)(address - w->start),
                        cmd == EXTI_LC_ROUTINES_64);
}

static void find_start(struct walk *w, struct exti_cur *c)
{
    char name[16];

    for (size_t i = 0; i < sizeof name; i++)
        name[i] = (char)exti__cur_u8(c);
    if (!strncmp(name, "__TEXT", sizeof name))
        w->start = exti__cur_u64(c);
}

/* Looks for functions of w->type, or only for __TEXT. */
static void walk_commands(struct walk *w, bool only_start)
{
    struct exti_cur header = exti__cur(w->image, false);
    uint32_t count;
    uint64_t at = MACH_HEADER_64_SIZE;

    exti__cur_skip(&header, 16);
    count = exti__cur_u32(&header);
    for (uint32_t i = 0; i < count && !w->ended; i++) {
        struct exti_span s;
        struct exti_cur c;
        uint32_t cmd, size;

        if (exti__span_sub(w->image, at, 8, "", &s, NULL))
            return;
        c = exti__cur(s, false);
        cmd = exti__cur_u32(&c);
        size = exti__cur_u32(&c);
        if (size < 8 || exti__span_sub(w->image, at, size, "", &s, NULL))
            return;
        c = exti__cur(s, false);
        exti__cur_skip(&c, 8);
        if (cmd == LC_SEGMENT_64 && only_start)
            find_start(w, &c);
        else if (cmd == LC_SEGMENT_64 && w->type != NO_TYPE)
            walk_sections(w, &c);
        else if (exti__macho_withheld_command(cmd) == EXTI_LC_ROUTINES_64 && w->type == NO_TYPE &&
                 !only_start)
            walk_routine(w, cmd, &c);
        at += size;
    }
}

void exti__macho_functions(struct exti_span image,
                           int (*each)(void *user, const struct exti_macho_function *f), void *user)
{
    static const uint32_t types[] = {NO_TYPE, S_MOD_INIT_FUNC_POINTERS, S_INIT_FUNC_OFFSETS,
                                     S_MOD_TERM_FUNC_POINTERS};
    struct walk w = {.image = image, .each = each, .user = user};

    walk_commands(&w, true);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        w.type = types[i];
        walk_commands(&w, false);
    }
}
