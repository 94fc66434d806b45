/* What the kernel, dyld and Apple's tools require of a file, from dyld's mach_o sources,
 * cctools' checkout.c, and the machine's page size. */
#include "tests/macho_inputs/loader/load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* dyld applies some rules only to files built with newer SDKs (Policy.cpp). */
enum { SDK_12 = 12 << 16, SDK_26 = 26 << 16 };

static unsigned long long ull(uint64_t v)
{
    return v;
}

/* ---- segments and sections ------------------------------------------------------------------- */

static bool zero_filled(const struct section *s)
{
    uint32_t type = s->flags & 0xff;

    return type == 1 || type == 0xc || type == 0x12;
}

/* Image::validSemanticsSegments, and what mmap requires. */
static void check_segments(const struct macho *m)
{
    const struct segment *last = NULL;

    for (size_t i = 0; i < m->segment_count; i++) {
        const struct segment *s = &m->segments[i];

        if (s->vmaddr % m->page || s->fileoff % m->page)
            die("%s: %s is not on a page of 0x%llx", m->path, s->name, ull(m->page));
        if (s->initprot && s->filesize > s->vmsize)
            die("%s: %s is longer in the file than in memory", m->path, s->name);
        bytes_at(m, s->fileoff, s->filesize);
        if (last && (s->vmaddr < last->vmaddr + last->vmsize ||
                     (s->filesize && s->fileoff < last->fileoff + last->filesize)))
            die("%s: %s begins before %s ends", m->path, s->name, last->name);
        if (strcmp(s->name, "__TEXT") == 0 && (s->fileoff != 0 || s->initprot != 5))
            die("%s: __TEXT is not the file's beginning, to be read and run", m->path);
        last = s;
    }
    if (!last || strcmp(last->name, "__LINKEDIT") != 0 || last->initprot != 1 ||
        last->fileoff + last->filesize != m->n)
        die("%s: __LINKEDIT is not the file's end, to be read", m->path);
}

static const struct segment *segment_named(const struct macho *m, const char *name)
{
    for (size_t i = 0; i < m->segment_count; i++)
        if (strcmp(m->segments[i].name, name) == 0)
            return &m->segments[i];
    die("%s: has no %s", m->path, name);
}

static void check_sections(const struct macho *m)
{
    for (size_t i = 0; i < m->section_count; i++) {
        const struct section *x = &m->sections[i];
        const struct segment *s = segment_named(m, x->segment);

        if (x->addr < s->vmaddr || x->size > s->vmsize || x->addr - s->vmaddr > s->vmsize - x->size)
            die("%s: %s,%s is not in its segment", m->path, x->segment, x->name);
        if (zero_filled(x) || !x->size)
            continue;
        if (x->offset - s->fileoff != x->addr - s->vmaddr)
            die("%s: %s,%s is at 0x%x in the file, but at 0x%llx in memory", m->path, x->segment,
                x->name, x->offset, ull(x->addr));
        if (x->offset < 32 + (uint64_t)m->sizeofcmds)
            die("%s: the load commands reach into %s,%s", m->path, x->segment, x->name);
    }
}

/* ---- __LINKEDIT ------------------------------------------------------------------------------ */

/* checkout.c, dyld_order: each piece must start where the previous one ends. */
static void check_linkedit(const struct macho *m)
{
    const struct {
        const char *name;
        struct blob b;
        uint32_t align;
    } pieces[] = {{"rebase", m->rebase, 8},
                  {"bind", m->bind, 8},
                  {"weak bind", m->weak_bind, 8},
                  {"lazy bind", m->lazy_bind, 8},
                  {"chained fixups", m->chained, 8},
                  {"exports", m->trie, 8},
                  {"split info", m->split_info, 8},
                  {"function starts", m->function_starts, 8},
                  {"data in code", m->data_in_code, 8},
                  {"symbols", m->symbols, 8},
                  {"indirect symbols", m->indirect, 4},
                  {"strings", m->strings, 1},
                  {"signature", m->signature, 16}};
    uint64_t at = segment_named(m, "__LINKEDIT")->fileoff;

    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        struct blob b = pieces[i].b;
        uint64_t slack = i + 2 >= sizeof pieces / sizeof *pieces ? 16 : 1;

        if (!b.size)
            continue;
        if (b.off % pieces[i].align || b.off < at || b.off - at >= slack)
            die("%s: %s are at 0x%x, not at 0x%llx", m->path, pieces[i].name, b.off, ull(at));
        at = (uint64_t)b.off + b.size;
    }
    if (at != m->n)
        die("%s: __LINKEDIT goes on past its last piece, to 0x%llx", m->path, ull(m->n));
}

/* ---- libraries and symbols ------------------------------------------------------------------- */

static void check_commands(const struct macho *m)
{
    if (m->id_count != (m->filetype == MH_DYLIB))
        die("%s: %zu LC_ID_DYLIB in a file of type %u", m->path, m->id_count, m->filetype);
    if (m->uuid_count > 1 || (m->uuid_count == 0 && m->sdk >= SDK_12))
        die("%s: %zu LC_UUID", m->path, m->uuid_count);
    if (!m->dylib_count)
        die("%s: needs no library", m->path);
    for (size_t i = 0; i < m->dylib_count && m->sdk >= SDK_26; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(m->dylibs[i].name, m->dylibs[j].name) == 0)
                die("%s: needs %s twice", m->path, m->dylibs[i].name);
    for (size_t i = 0; i < m->rpath_count && m->sdk >= SDK_26; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(m->rpaths[i], m->rpaths[j]) == 0)
                die("%s: has the LC_RPATH %s twice", m->path, m->rpaths[i]);
    if (m->has_chained && m->has_dyld_info)
        die("%s: has both kinds of fixups", m->path);
    if (m->symbol_count != m->local_symbols + m->defined_symbols + m->undefined_symbols)
        die("%s: LC_DYSYMTAB does not count all symbols", m->path);
}

void check_slice(const struct macho *m)
{
    check_commands(m);
    check_segments(m);
    check_sections(m);
    check_linkedit(m);
}

struct symbol {
    const char *name;
    uint8_t type, section;
    uint16_t desc;
    uint64_t value;
};

static struct symbol symbol_at(const struct macho *m, uint32_t i)
{
    uint64_t at = m->symbols.off + 16 * (uint64_t)i;

    return (struct symbol){
        string_at(m, m->strings.off + get32(m, at), (uint64_t)m->strings.off + m->strings.size),
        *bytes_at(m, at + 4, 1), *bytes_at(m, at + 5, 1), get16(m, at + 6), get64(m, at + 8)};
}

/* The symbol table must agree with the fixups about imports. */
static void check_import(void *user, const struct import *import)
{
    const struct macho *m = user;
    int wanted = import->ordinal == MAIN ? 0xff : import->ordinal == FLAT ? 0xfe : import->ordinal;

    if (import->ordinal == WEAK)
        return;
    if (import->ordinal < FLAT || import->ordinal > (int)m->dylib_count)
        die("%s: %s binds to ordinal %d", m->path, import->symbol, import->ordinal);
    /* Without MH_TWOLEVEL symbols have no ordinals. */
    for (uint32_t i = m->local_symbols + m->defined_symbols;
         m->flags & MH_TWOLEVEL && i < m->symbol_count; i++) {
        struct symbol s = symbol_at(m, i);

        if (strcmp(s.name, import->symbol) == 0 && s.desc >> 8 != wanted)
            die("%s: %s binds to ordinal %d, but the symbol table says %d", m->path, import->symbol,
                import->ordinal, s.desc >> 8);
    }
}

/* A symbol's value must agree with section headers, exports and function starts. */
static void check_definition(const struct macho *m, const struct symbol *s,
                             const struct starts *starts)
{
    const struct section *x = &m->sections[s->section - 1];
    struct export e;

    if (s->section == 0 || s->section > m->section_count)
        die("%s: %s is in section %u", m->path, s->name, s->section);
    /* The header's own symbol is before the first section. */
    if (s->value < x->addr || s->value > x->addr + x->size) {
        if (s->value != m->start)
            die("%s: %s is not in %s", m->path, s->name, x->name);
    } else if (x->flags & 0x80000000 && s->value < x->addr + x->size &&
               strcmp(x->name, "__text") == 0 && !is_function(starts, s->value - m->start)) {
        die("%s: %s is no start of a function", m->path, s->name);
    }
    if ((s->type & 0x11) == 1 && find_export(m, s->name, &e) && !(e.flags & 8) &&
        e.address != s->value - m->start)
        die("%s: %s is at 0x%llx, but exported as 0x%llx", m->path, s->name, ull(s->value),
            ull(e.address));
}

struct exports {
    const struct macho *m;
    size_t count;
};

static void check_export(void *user, const struct export *e)
{
    struct exports *x = user;
    const struct macho *m = x->m;

    x->count++;
    if (e->flags & 8)
        return;
    for (uint32_t i = m->local_symbols; i < m->local_symbols + m->defined_symbols; i++)
        if (strcmp(symbol_at(m, i).name, e->name) == 0)
            return;
    die("%s: exports %s, which is no symbol", m->path, e->name);
}

struct starts function_starts(const struct macho *m)
{
    struct starts s = {take_memory((m->function_starts.size + 1) * sizeof(uint64_t)), 0};
    struct reader r = read_blob(m, m->function_starts);
    uint64_t at = 0;

    while (r.at < r.end) {
        uint64_t step = read_uleb(&r);

        if (!step)
            break;
        at += step;
        s.at[s.count++] = at;
    }
    return s;
}

/* Unless the file has no function starts. */
bool is_function(const struct starts *s, uint64_t at)
{
    if (!s->count)
        return true;
    for (size_t i = 0; i < s->count; i++)
        if (s->at[i] == at)
            return true;
    return false;
}

static bool is_code(const struct macho *m, uint64_t at)
{
    for (size_t i = 0; i < m->section_count; i++) {
        const struct section *x = &m->sections[i];

        if (x->flags & 0x80000400 && at + m->start >= x->addr && at + m->start < x->addr + x->size)
            return true;
    }
    return false;
}

static void check_init_offsets(const struct macho *m, const struct starts *starts)
{
    for (size_t i = 0; i < m->section_count; i++) {
        const struct section *x = &m->sections[i];

        if ((x->flags & 0xff) != 0x16)
            continue;
        for (uint64_t o = 0; o < x->size; o += 4)
            if (!is_function(starts, get32(m, x->offset + o)))
                die("%s: the initialiser at 0x%x is no function", m->path, get32(m, x->offset + o));
    }
}

static void check_rebase(void *user, const struct fixup *f)
{
    const struct macho *m = user;
    uint64_t at = (f->target & 0xffffffffffffff) + m->start;

    if (f->is_bind)
        return;
    for (size_t i = 0; i < m->section_count; i++) {
        if (at >= m->sections[i].addr && at <= m->sections[i].addr + m->sections[i].size)
            return;
    }
    /* __dso_handle: a header, though perhaps not the first. */
    if (get32(m, offset_of(m, at)) == 0xfeedfacf)
        return;
    die("%s: 0x%llx is rebased to 0x%llx, where there is nothing", m->path, ull(f->at),
        ull(f->target));
}

void check_contents(const struct macho *m)
{
    struct starts starts = function_starts(m);
    struct exports x = {m, 0};
    struct macho *user = (struct macho *)(uintptr_t)m;

    each_import(m, check_import, user);
    each_fixup(m, check_rebase, user);
    for (size_t i = 0; i < starts.count; i++)
        if (!is_code(m, starts.at[i]))
            die("%s: the function start 0x%llx is no code", m->path, ull(starts.at[i]));
    for (uint32_t i = 0; i < m->symbol_count; i++) {
        struct symbol s = symbol_at(m, i);

        if (!(s.type & 0xe0) && (s.type & 0xe) == 0xe)
            check_definition(m, &s, &starts);
    }
    each_export(m, check_export, &x);
    check_init_offsets(m, &starts);
    for (uint32_t o = 0; o < m->data_in_code.size; o += 8)
        if (!is_code(m, get32(m, m->data_in_code.off + o)))
            die("%s: data in code is not in code", m->path);
    check_unwind_info(m, &starts);
}
