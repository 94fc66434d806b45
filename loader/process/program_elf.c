/* Once found, the program is only read in memory: it is never unloaded. */
#include "loader/process/program.h"

#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/path.h"
#include "loader/image/symbol_names.h"
#include "loader/process/elf_relocations.h"

static struct exti_loaded program; /* without symbols until it is found */
static bool has_exports;
static const char *loader = ""; /* the base name of ld.so's file */

/* ---- variables of libraries ---- */

bool exti__program_has_copied(const struct exti_loaded *lib, uintptr_t address)
{
    const uint8_t *p = lib->relocs[0];
    const size_t entry = lib->reloc_addends[0] ? sizeof(ElfW(Rela)) : sizeof(ElfW(Rel));

    for (size_t at = 0; p && at + entry <= lib->reloc_size[0]; at += entry) {
        const ElfW(Rel) *r = (const void *)(p + at); /* as a Rela begins, too */

        if (RELOC_TYPE(r->r_info) == RELOC_COPY && lib->base + r->r_offset == address)
            return true;
    }
    return false;
}

/* ---- the program's own symbols ---- */

/* The range of symbols among which all definitions are. */
static size_t definitions_end(const struct exti_loaded *lib, size_t *first)
{
    const uint32_t *table = lib->gnu_hash, *bucket, *chain;
    size_t last = 0;

    *first = 1;
    if (!table)
        return lib->sysv_hash ? lib->sysv_hash[1] : 0;
    bucket = (const void *)((const ElfW(Addr) *)(const void *)(table + 4) + table[2]);
    chain = bucket + table[0];
    *first = table[1];
    for (uint32_t i = 0; i < table[0]; i++)
        last = bucket[i] > last ? bucket[i] : last;
    if (!last)
        return 0;
    while (!(chain[last - table[1]] & 1))
        last++;
    return last + 1;
}

static bool defines_any(const struct exti_loaded *lib)
{
    const ElfW(Sym) *symbols = lib->symbols;
    size_t i, end = definitions_end(lib, &i);

    for (; i < end; i++)
        if (symbols[i].st_shndx != SHN_UNDEF && ELF64_ST_BIND(symbols[i].st_info) != STB_LOCAL &&
            !exti__is_file_symbol(lib->strings + symbols[i].st_name) &&
            !exti__program_has_copied(lib, lib->base + symbols[i].st_value))
            return true;
    return false;
}

/* The program comes first. */
static int take(void *user, const struct exti_loaded *lib, const struct exti_layout *layout)
{
    bool *is_first = user;

    (void)layout;
    if (*is_first)
        program = *lib;
    *is_first = false;
    if (lib->base != getauxval(AT_BASE))
        return 0;
    loader = exti__base_name(lib->path);
    return 1;
}

static void find_program(void)
{
    bool is_first = true;

    exti__loaded_each(take, &is_first);
    has_exports = program.symbols && defines_any(&program);
}

void exti__program_find(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, find_program);
}

bool exti__program_has_exports(void)
{
    return has_exports;
}

bool exti__program_exports(const char *name)
{
    return has_exports && exti__loaded_defines(&program, name) &&
           !exti__program_has_copied(&program, exti__loaded_symbol(&program, name));
}

bool exti__is_loader(const char *file)
{
    return *loader && strcmp(exti__base_name(file), loader) == 0;
}

/* ---- preloaded libraries ---- */

struct preload_search {
    const struct exti_loaded *wanted;
    struct exti_loaded first; /* the program */
    size_t named;             /* what it names that has not come yet */
    bool seen, found;
};

/* musl's libc is ld.so, has no SONAME, and every program needs it. */
static bool is_c_library(const struct exti_loaded *lib)
{
#if defined(__GLIBC__)
    (void)lib;
    return false;
#else
    return lib->base == getauxval(AT_BASE);
#endif
}

static bool is_needed_by(const struct exti_loaded *user, const struct exti_loaded *lib)
{
    const char *id = exti__loaded_id(lib), *name;

    if (is_c_library(lib))
        return true;
    for (size_t i = 0; (name = exti__loaded_needed(user, i)); i++)
        if (strcmp(exti__base_name(name), id ? id : exti__base_name(lib->path)) == 0)
            return true;
    return false;
}

/* glibc's rtld.c and musl's dynlink.c map the program, then what is preloaded, then what the
 * program names, and only then what these need.  So what comes before something that the program
 * names, and is not named itself, was preloaded.  What the program names may be preloaded, too.
 * After all that the program names, a library of such a name is another one, opened later. */
static int match_preloaded(void *user, const struct exti_loaded *lib,
                           const struct exti_layout *layout)
{
    struct preload_search *s = user;
    bool is_wanted, is_needed;

    (void)layout;
    if (!s->first.symbols) {
        s->first = *lib;
        while (exti__loaded_needed(lib, s->named))
            s->named++;
        return s->named == 0;
    }
    is_wanted = lib->dynamic == s->wanted->dynamic;
    is_needed = is_needed_by(&s->first, lib);
    s->found = s->seen && is_needed;
    s->seen = s->seen || is_wanted;
    s->named -= is_needed;
    return s->found || (is_wanted && is_needed) || s->named == 0;
}

bool exti__is_preloaded(const struct exti_loaded *lib)
{
    struct preload_search s = {.wanted = lib};

    exti__loaded_each(match_preloaded, &s);
    return s.found;
}
