/* Looks into Mach-O files:
 *
 *   macho_check --bindings FILE...  a line for each symbol that a slice binds: architecture, symbol,
 *                                   and the library that it binds to or flat, main, weak or self
 *   macho_check --layout FILE...    a line for each slice: architecture, offset of the slice, of its
 *                                   first section and of __LINKEDIT, and room for load commands
 *   macho_check --sound FILE...     says nothing where dyld and the kernel would find no fault
 *   macho_check --whole FILE...     nor are there contradictions within it; for what ld64.lld linked */
#include "tests/macho_inputs/loader/load.h"

#include <stdio.h>
#include <string.h>

static const char *target_name(const struct macho *m, const struct import *i)
{
    switch (i->ordinal) {
    case SELF:
        return "self";
    case MAIN:
        return "main";
    case FLAT:
        return "flat";
    case WEAK:
        return "weak";
    default:
        break;
    }
    if (i->ordinal < 0 || (size_t)i->ordinal > m->dylib_count)
        die("%s: %s binds to ordinal %d", m->path, i->symbol, i->ordinal);
    return m->dylibs[i->ordinal - 1].name;
}

static void print_import(void *user, const struct import *i)
{
    const struct macho *m = user;

    printf("%s %s %s\n", arch_name(m), i->symbol, target_name(m, i));
}

/* A file with neither kind of fixups binds by its symbol table. */
static void print_undefined(const struct macho *m)
{
    for (uint32_t i = 0; i < m->symbol_count; i++) {
        uint64_t at = m->symbols.off + 16 * (uint64_t)i;
        uint32_t ordinal = get16(m, at + 6) >> 8;
        struct import x = {.ordinal = ordinal == 0xff ? MAIN
                                      : ordinal == 0xfe || !(m->flags & MH_TWOLEVEL)
                                          ? FLAT
                                          : (int)ordinal};
        uint8_t type = *bytes_at(m, at + 4, 1);

        if (type & 0xe0 || (type & 0xe) != 0 || !(type & 1))
            continue;
        x.symbol =
            string_at(m, m->strings.off + get32(m, at), (uint64_t)m->strings.off + m->strings.size);
        print_import((void *)(uintptr_t)m, &x);
    }
}

static void print_bindings(struct macho *m, void *user)
{
    (void)user;
    if (m->has_chained || m->has_dyld_info)
        each_import(m, print_import, m);
    else
        print_undefined(m);
}

static void print_layout(struct macho *m, void *user)
{
    uint64_t first = UINT64_MAX, linkedit = 0;

    (void)user;
    for (size_t i = 0; i < m->section_count; i++)
        if (m->sections[i].offset && m->sections[i].size && m->sections[i].offset < first)
            first = m->sections[i].offset;
    for (size_t i = 0; i < m->segment_count; i++)
        if (strcmp(m->segments[i].name, "__LINKEDIT") == 0)
            linkedit = m->segments[i].fileoff;
    printf("%s 0x%llx 0x%llx 0x%llx %lld\n", arch_name(m), (unsigned long long)m->at,
           (unsigned long long)first, (unsigned long long)linkedit,
           (long long)(first - 32 - m->sizeofcmds));
}

/* `user`: the contents too. */
static void check(struct macho *m, void *user)
{
    check_slice(m);
    check_signature(m);
    if (user)
        check_contents(m);
}

int main(int argc, char **argv)
{
    static bool whole = true;
    static const struct {
        const char *option;
        void (*each)(struct macho *m, void *user);
        void *user;
    } modes[] = {{"--bindings", print_bindings, NULL},
                 {"--layout", print_layout, NULL},
                 {"--sound", check, NULL},
                 {"--whole", check, &whole}};

    for (size_t i = 0; argc > 2 && i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(argv[1], modes[i].option) == 0) {
            for (char **file = argv + 2; *file; file++)
                each_slice(*file, NULL, modes[i].each, modes[i].user);
            return 0;
        }
    }
    die("usage: macho_check --bindings|--layout|--sound|--whole FILE...");
}
