/* Prints or checks what is in Mach-O files:
 *
 *   macho_check --bindings FILE...  one line per symbol that a slice binds: architecture, symbol,
 *                                   and its library or flat, main, weak or self
 *   macho_check --layout FILE...    one line per slice: architecture, offsets of the slice, its
 *                                   first section and __LINKEDIT, and room for load commands
 *   macho_check --exports FILE...   one line per exported symbol: architecture, symbol
 *   macho_check --bound LIBRARY NAME FILE...
 *                                   the number of references to LIBRARY's exports, if each binds
 *                                   to NAME or LIBRARY's install name; otherwise one that does not
 *   macho_check --sound FILE...     silent if dyld and the kernel would accept the file
 *   macho_check --whole FILE...     also checks its consistency; for output of ld64.lld */
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

/* A file without either kind of fixups binds by its symbol table. */
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

static void print_export(void *user, const struct export *e)
{
    printf("%s %s\n", arch_name(user), e->name);
}

static void print_exports(struct macho *m, void *user)
{
    (void)user;
    each_export(m, print_export, m);
}

/* ---- what binds to one library only ---------------------------------------------------------- */

struct bound {
    const struct macho *slices[2]; /* of the library */
    size_t slice_count;
    const char *name; /* the name that it must be bound to */
    const struct macho *library, *m;
    size_t references;
};

static void add_library_slice(struct macho *m, void *user)
{
    struct bound *b = user;

    if (b->slice_count >= 2)
        die("%s: has too many slices", m->path);
    b->slices[b->slice_count++] = m;
}

static void check_bound(void *user, const struct import *i)
{
    struct bound *b = user;
    const char *target = target_name(b->m, i);
    struct export e;

    if (!find_export(b->library, i->symbol, &e))
        return;
    b->references++;
    if (strcmp(target, b->name) != 0 && (!b->library->id || strcmp(target, b->library->id) != 0))
        die("%s: %s %s binds to %s", b->m->path, arch_name(b->m), i->symbol, target);
}

static void check_slice_bound(struct macho *m, void *user)
{
    struct bound *b = user;

    b->library = NULL;
    b->m = m;
    for (size_t i = 0; i < b->slice_count; i++)
        if (b->slices[i]->cputype == m->cputype)
            b->library = b->slices[i];
    if (!b->library)
        die("%s: the library has no slice for %s", m->path, arch_name(m));
    if (!m->has_chained && !m->has_dyld_info)
        die("%s: binds by its symbol table", m->path);
    each_import(m, check_bound, b);
}

static void check_files_bound(char **arg)
{
    struct bound b = {.name = arg[1]};

    each_slice(arg[0], NULL, add_library_slice, &b);
    for (arg += 2; *arg; arg++)
        each_slice(*arg, NULL, check_slice_bound, &b);
    printf("%zu\n", b.references);
}

/* ---- layout ---------------------------------------------------------------------------------- */

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

/* `user`: checks the contents too. */
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
                 {"--exports", print_exports, NULL},
                 {"--layout", print_layout, NULL},
                 {"--sound", check, NULL},
                 {"--whole", check, &whole}};

    if (argc > 4 && strcmp(argv[1], "--bound") == 0) {
        check_files_bound(argv + 2);
        return 0;
    }
    for (size_t i = 0; argc > 2 && i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(argv[1], modes[i].option) == 0) {
            for (char **file = argv + 2; *file; file++)
                each_slice(*file, NULL, modes[i].each, modes[i].user);
            return 0;
        }
    }
    die("usage: macho_check --bindings|--exports|--layout|--sound|--whole FILE...\n"
        "       macho_check --bound LIBRARY NAME FILE...");
}
