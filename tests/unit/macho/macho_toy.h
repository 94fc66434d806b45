/* A hand-made dylib or bundle with every structure that a Mach-O reader decodes, at known
 * offsets.  Shares no code with the library.  __DATA has six pointers: _PyFlat (flat), _malloc
 * (library 1), _PyOptional (flat, weak import; lazily bound in a file with opcodes), _toy_weak
 * (a weak binding), and two to its own data. */
#ifndef TESTS_UNIT_MACHO_TOY_H
#define TESTS_UNIT_MACHO_TOY_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "macho/read/macho_defs.h"

struct macho_toy_opts {
    bool arm, chained, bundle, naked; /* naked: no signature */
    uint32_t imports;                 /* DYLD_CHAINED_IMPORT*; 0: the plain one */
    size_t room;                      /* bytes free after the load commands; 0: 64 */
    const char *const *exports;       /* exported instead of its own names, all like _toy_func;
                                 * NULL-terminated, no name a prefix of another */
};

struct macho_toy {
    struct macho_toy_opts o;
    uint8_t b[0x10000];
    size_t n, page;
    uint32_t ncmds;
    size_t text, data, linkedit; /* offsets of __text, of __DATA and of __LINKEDIT */
    size_t rebase, bind, weak, lazy, trie, chained, starts, data_in_code, symbols, indirect,
        strings, signature, end; /* offsets of the pieces */
    size_t rebase_n, bind_n, weak_n, lazy_n, trie_n, chained_n;
    size_t strings_n;
};

enum {
    MTOY_TEXT_SIZE = 0x40,
    MTOY_DATA_SIZE = 56,
    MTOY_BSS_SIZE = 24,
    MTOY_SLOTS = 6,
    MTOY_SYMBOLS = 6,
    MTOY_DEFINED = 3
};
#define MTOY_BASE 0x10000u /* of the image in memory */
#define MTOY_ID "@rpath/libtoy.dylib"
#define MTOY_SYSTEM "/usr/lib/libSystem.B.dylib"
#define MTOY_WEAK_LIB "@rpath/libw.dylib"
#define MTOY_REEXPORT "@loader_path/libr.dylib"
#define MTOY_RPATH "@loader_path/../lib"

static inline void mtoy_put(struct macho_toy *t, size_t at, size_t width, uint64_t v)
{
    for (size_t i = 0; i < width; i++)
        t->b[at + i] = (uint8_t)(v >> 8 * i);
}

static inline uint64_t mtoy_get(const struct macho_toy *t, size_t at, size_t width)
{
    uint64_t v = 0;

    for (size_t i = 0; i < width; i++)
        v |= (uint64_t)t->b[at + i] << 8 * i;
    return v;
}

static inline void mtoy_add(struct macho_toy *t, size_t width, uint64_t v)
{
    mtoy_put(t, t->n, width, v);
    t->n += width;
}

static inline void mtoy_add_be(struct macho_toy *t, size_t width, uint64_t v)
{
    for (size_t i = 0; i < width; i++)
        t->b[t->n++] = (uint8_t)(v >> 8 * (width - 1 - i));
}

static inline void mtoy_bytes(struct macho_toy *t, const void *p, size_t n)
{
    memcpy(t->b + t->n, p, n);
    t->n += n;
}

static inline void mtoy_string(struct macho_toy *t, const char *s)
{
    mtoy_bytes(t, s, strlen(s) + 1);
}

static inline void mtoy_align(struct macho_toy *t, size_t align)
{
    t->n = (t->n + align - 1) / align * align;
}

/* The offset of load command `cmd` number `nth` (from 0), or 0. */
static inline size_t mtoy_find(const struct macho_toy *t, uint32_t cmd, unsigned nth)
{
    size_t at = MACH_HEADER_64_SIZE;

    for (uint32_t i = 0; i < t->ncmds; i++) {
        if (mtoy_get(t, at, 4) == cmd && !nth--)
            return at;
        at += mtoy_get(t, at + 4, 4);
    }
    return 0;
}

/* ---- load commands --------------------------------------------------------------------------- */

static inline void mtoy_name(struct macho_toy *t, const char *name)
{
    memcpy(t->b + t->n, name, strlen(name));
    t->n += 16;
}

static inline void mtoy_segment(struct macho_toy *t, const char *name, size_t fileoff, size_t size,
                                uint32_t prot, uint32_t nsects)
{
    size_t vmsize = (size + t->page - 1) / t->page * t->page;

    t->ncmds++;
    mtoy_add(t, 4, LC_SEGMENT_64);
    mtoy_add(t, 4, SEGMENT_COMMAND_64_SIZE + nsects * SECTION_64_SIZE);
    mtoy_name(t, name);
    mtoy_add(t, 8, MTOY_BASE + fileoff);
    mtoy_add(t, 8, vmsize);
    mtoy_add(t, 8, fileoff);
    mtoy_add(t, 8, size);
    mtoy_add(t, 4, prot);
    mtoy_add(t, 4, prot);
    mtoy_add(t, 4, nsects);
    mtoy_add(t, 4, 0);
}

static inline void mtoy_section(struct macho_toy *t, const char *name, const char *segment,
                                size_t at, size_t size, uint32_t flags, uint32_t reserved1)
{
    mtoy_name(t, name);
    mtoy_name(t, segment);
    mtoy_add(t, 8, MTOY_BASE + at);
    mtoy_add(t, 8, size);
    mtoy_add(t, 4, (flags & SECTION_TYPE) == S_ZEROFILL ? 0 : at);
    mtoy_add(t, 4, 3);
    mtoy_add(t, 4, 0);
    mtoy_add(t, 4, 0);
    mtoy_add(t, 4, flags);
    mtoy_add(t, 4, reserved1);
    mtoy_add(t, 4, 0);
    mtoy_add(t, 4, 0);
}

static inline void mtoy_command(struct macho_toy *t, uint32_t cmd, const uint32_t *words, size_t n)
{
    t->ncmds++;
    mtoy_add(t, 4, cmd);
    mtoy_add(t, 4, 8 + 4 * n);
    for (size_t i = 0; i < n; i++)
        mtoy_add(t, 4, words[i]);
}

/* A command of `n` words that ends with a string; the first word is the string's offset. */
static inline void mtoy_named(struct macho_toy *t, uint32_t cmd, const uint32_t *words, size_t n,
                              const char *s)
{
    size_t start = t->n;

    mtoy_command(t, cmd, words, n);
    mtoy_string(t, s);
    mtoy_align(t, 8);
    mtoy_put(t, start + 4, 4, t->n - start);
    mtoy_put(t, start + 8, 4, 8 + 4 * n);
}

static inline void mtoy_dylib(struct macho_toy *t, uint32_t cmd, const char *name)
{
    const uint32_t words[] = {0, 2, 0x10203, 0x10000};

    mtoy_named(t, cmd, words, 4, name);
}

static inline void mtoy_linkedit_data(struct macho_toy *t, uint32_t cmd, size_t at, size_t n)
{
    const uint32_t words[] = {(uint32_t)at, (uint32_t)n};

    mtoy_command(t, cmd, words, 2);
}

static inline void mtoy_segments(struct macho_toy *t)
{
    size_t data = t->data;

    mtoy_segment(t, "__TEXT", 0, data, VM_PROT_READ | VM_PROT_EXECUTE, 1);
    mtoy_section(t, "__text", "__TEXT", t->text, MTOY_TEXT_SIZE,
                 S_ATTR_PURE_INSTRUCTIONS | S_ATTR_SOME_INSTRUCTIONS, 0);
    mtoy_segment(t, "__DATA", data, t->page, VM_PROT_READ | VM_PROT_WRITE, 4);
    mtoy_section(t, "__got", "__DATA", data, 16, S_NON_LAZY_SYMBOL_POINTERS, 0);
    mtoy_section(t, "__la_symbol_ptr", "__DATA", data + 16, 8, S_LAZY_SYMBOL_POINTERS, 2);
    mtoy_section(t, "__data", "__DATA", data + 24, MTOY_DATA_SIZE - 24, 0, 0);
    mtoy_section(t, "__bss", "__DATA", data + MTOY_DATA_SIZE, MTOY_BSS_SIZE, S_ZEROFILL, 0);
    mtoy_segment(t, "__LINKEDIT", t->linkedit, t->end - t->linkedit, VM_PROT_READ, 0);
}

static inline void mtoy_fixup_commands(struct macho_toy *t)
{
    const uint32_t info[] = {
        (uint32_t)t->rebase, (uint32_t)t->rebase_n, (uint32_t)t->bind, (uint32_t)t->bind_n,
        (uint32_t)t->weak,   (uint32_t)t->weak_n,   (uint32_t)t->lazy, (uint32_t)t->lazy_n,
        (uint32_t)t->trie,   (uint32_t)t->trie_n,
    };

    if (t->o.chained) {
        mtoy_linkedit_data(t, LC_DYLD_CHAINED_FIXUPS, t->chained, t->chained_n);
        mtoy_linkedit_data(t, LC_DYLD_EXPORTS_TRIE, t->trie, t->trie_n);
    } else {
        mtoy_command(t, LC_DYLD_INFO_ONLY, info, 10);
    }
}

static inline void mtoy_commands(struct macho_toy *t)
{
    const uint32_t symtab[] = {(uint32_t)t->symbols, MTOY_SYMBOLS, (uint32_t)t->strings,
                               (uint32_t)t->strings_n};
    const uint32_t dysymtab[18] = {0,
                                   0,
                                   0,
                                   MTOY_DEFINED,
                                   MTOY_DEFINED,
                                   MTOY_SYMBOLS - MTOY_DEFINED,
                                   [12] = (uint32_t)t->indirect,
                                   3};
    const uint32_t uuid[] = {0x03020100, 0x07060504, 0x0b0a0908, 0x0f0e0d0c};
    const uint32_t build[] = {PLATFORM_MACOS, 0x000b0000, 0x000d0300, 1, 3, 0x00100000};
    const uint32_t source[] = {0, 0}, word[] = {0};

    t->n = MACH_HEADER_64_SIZE;
    t->ncmds = 0;
    mtoy_segments(t);
    if (!t->o.bundle)
        mtoy_dylib(t, LC_ID_DYLIB, MTOY_ID);
    mtoy_fixup_commands(t);
    mtoy_command(t, LC_SYMTAB, symtab, 4);
    mtoy_command(t, LC_DYSYMTAB, dysymtab, 18);
    mtoy_command(t, LC_UUID, uuid, 4);
    mtoy_command(t, LC_BUILD_VERSION, build, 6);
    mtoy_command(t, LC_SOURCE_VERSION, source, 2);
    mtoy_dylib(t, LC_LOAD_DYLIB, MTOY_SYSTEM);
    mtoy_dylib(t, LC_LOAD_WEAK_DYLIB, MTOY_WEAK_LIB);
    mtoy_dylib(t, LC_REEXPORT_DYLIB, MTOY_REEXPORT);
    mtoy_named(t, LC_RPATH, word, 1, MTOY_RPATH);
    mtoy_linkedit_data(t, LC_FUNCTION_STARTS, t->starts, 8);
    mtoy_linkedit_data(t, LC_DATA_IN_CODE, t->data_in_code, 0);
    if (!t->o.naked)
        mtoy_linkedit_data(t, LC_CODE_SIGNATURE, t->signature, t->end - t->signature);
}

static inline void mtoy_header(struct macho_toy *t)
{
    size_t end;

    mtoy_commands(t);
    end = t->n;
    t->n = 0;
    mtoy_add(t, 4, MH_MAGIC_64);
    mtoy_add(t, 4, t->o.arm ? CPU_TYPE_ARM64 : CPU_TYPE_X86_64);
    mtoy_add(t, 4, t->o.arm ? CPU_SUBTYPE_ARM64_ALL : CPU_SUBTYPE_X86_64_ALL);
    mtoy_add(t, 4, t->o.bundle ? MH_BUNDLE : MH_DYLIB);
    mtoy_add(t, 4, t->ncmds);
    mtoy_add(t, 4, end - MACH_HEADER_64_SIZE);
    mtoy_add(t, 4, 0x4 | MH_TWOLEVEL | MH_WEAK_DEFINES | MH_BINDS_TO_WEAK);
    mtoy_add(t, 4, 0);
    t->n = end;
}

/* ---- the body and __LINKEDIT ----------------------------------------------------------------- */

static inline void mtoy_body(struct macho_toy *t)
{
    size_t func = t->text, value = t->data + 48;

    for (size_t i = 0; i < MTOY_TEXT_SIZE; i += 4)
        mtoy_put(t, t->text + i, 4, t->o.arm ? 0xd65f03c0 : 0x909090c3);
    for (size_t i = 0; t->o.chained && i < MTOY_SLOTS; i++) {
        uint64_t next = i + 1 < MTOY_SLOTS ? 2 : 0; /* in units of 4 bytes */
        uint64_t target = i == 5 ? value : func;

        if (!t->o.arm) /* DYLD_CHAINED_PTR_64 holds addresses, the other one image offsets */
            target += MTOY_BASE;
        mtoy_put(t, t->data + 8 * i, 8,
                 i < 4 ? UINT64_C(1) << 63 | next << 51 | i : next << 51 | target);
    }
    for (size_t i = 2; !t->o.chained && i < MTOY_SLOTS; i++)
        mtoy_put(t, t->data + 8 * i, 8, MTOY_BASE + (i == 5 || i == 3 ? value : func));
    mtoy_put(t, value, 8, 42);
}

static inline void mtoy_uleb(struct macho_toy *t, uint64_t v)
{
    do
        mtoy_add(t, 1, (v & 0x7f) | (v > 0x7f ? 0x80 : 0));
    while (v >>= 7);
}

static inline void mtoy_opcodes(struct macho_toy *t)
{
    static const uint8_t rebase[] = {0x11, 0x21, 16, 0x54, 0},
                         bind[] = "\x3e\x40_PyFlat\0\x51\x71\x00\x90\x11\x40_malloc\0\x90",
                         weak[] = "\x40_toy_weak\0\x51\x71\x18\x90",
                         lazy[] = "\x71\x10\x3e\x41_PyOptional\0\x90";

    t->rebase = t->n;
    mtoy_bytes(t, rebase, sizeof rebase);
    mtoy_align(t, 8);
    t->rebase_n = t->n - t->rebase;
    t->bind = t->n;
    mtoy_bytes(t, bind, sizeof bind);
    mtoy_align(t, 8);
    t->bind_n = t->n - t->bind;
    t->weak = t->n;
    mtoy_bytes(t, weak, sizeof weak);
    mtoy_align(t, 8);
    t->weak_n = t->n - t->weak;
    t->lazy = t->n;
    mtoy_bytes(t, lazy, sizeof lazy);
    mtoy_align(t, 8);
    t->lazy_n = t->n - t->lazy;
}

static inline void mtoy_import(struct macho_toy *t, int ordinal, bool weak, size_t name)
{
    if (t->o.imports == DYLD_CHAINED_IMPORT_ADDEND64) {
        mtoy_add(t, 8, (uint64_t)(uint16_t)ordinal | (uint64_t)weak << 16 | (uint64_t)name << 32);
        mtoy_add(t, 8, 0);
        return;
    }
    mtoy_add(t, 4, (uint32_t)(uint8_t)ordinal | (uint32_t)weak << 8 | (uint32_t)name << 9);
    if (t->o.imports == DYLD_CHAINED_IMPORT_ADDEND)
        mtoy_add(t, 4, 0);
}

static inline void mtoy_fixups(struct macho_toy *t)
{
    static const char names[] = "\0_PyFlat\0_malloc\0_PyOptional\0_toy_weak";
    size_t c = t->n;

    t->chained = c;
    mtoy_add(t, 4, 0);
    mtoy_add(t, 4, 32); /* starts_offset */
    mtoy_add(t, 4, 80); /* imports_offset */
    mtoy_add(t, 4, 0);  /* symbols_offset, below */
    mtoy_add(t, 4, 4);
    mtoy_add(t, 4, t->o.imports);
    mtoy_add(t, 4, 0);
    t->n = c + 32;
    mtoy_add(t, 4, 3); /* one per segment */
    mtoy_add(t, 4, 0);
    mtoy_add(t, 4, 16);
    mtoy_add(t, 4, 0);
    mtoy_add(t, 4, 24);
    mtoy_add(t, 2, t->page);
    mtoy_add(t, 2, t->o.arm ? DYLD_CHAINED_PTR_64_OFFSET : DYLD_CHAINED_PTR_64);
    mtoy_add(t, 8, t->data);
    mtoy_add(t, 4, 0);
    mtoy_add(t, 2, 1);
    mtoy_add(t, 2, 0);
    t->n = c + 80;
    mtoy_import(t, BIND_SPECIAL_DYLIB_FLAT_LOOKUP, false, 1);
    mtoy_import(t, 1, false, 9);
    mtoy_import(t, BIND_SPECIAL_DYLIB_FLAT_LOOKUP, true, 17);
    mtoy_import(t, BIND_SPECIAL_DYLIB_WEAK_LOOKUP, false, 29);
    mtoy_put(t, c + 12, 4, t->n - c);
    mtoy_bytes(t, names, sizeof names);
    mtoy_align(t, 8);
    t->chained_n = t->n - c;
}

/* A root and one leaf for each name. */
static inline void mtoy_trie_of(struct macho_toy *t, const char *const *names)
{
    size_t count = 0, at;

    t->trie = t->n;
    while (names[count])
        count++;
    mtoy_add(t, 1, 0);
    mtoy_add(t, 1, count);
    at = 2;
    for (size_t i = 0; i < count; i++)
        at += strlen(names[i]) + 3;
    for (size_t i = 0; i < count; i++, at += 6) {
        mtoy_string(t, names[i]);
        mtoy_add(t, 1, (at & 0x7f) | 0x80);
        mtoy_add(t, 1, at >> 7);
    }
    for (size_t i = 0; i < count; i++) {
        mtoy_add(t, 2, 4);
        mtoy_add(t, 1, (t->text & 0x7f) | 0x80);
        mtoy_add(t, 1, (t->text >> 7 & 0x7f) | 0x80);
        mtoy_add(t, 1, t->text >> 14);
        mtoy_add(t, 1, 0);
    }
    mtoy_align(t, 8);
    t->trie_n = t->n - t->trie;
}

/* The root, a node for the common prefix, and three leaves.  All numbers are padded to a fixed
 * length, so offsets do not depend on values. */
static inline void mtoy_trie(struct macho_toy *t)
{
    static const char *const edges[] = {"func", "value", "weak"};
    const uint64_t addresses[] = {t->text, t->data + 48, t->data + 48}, flags[] = {0, 0, 4};
    size_t start = t->n, leaf[3];

    t->trie = start;
    mtoy_add(t, 1, 0); /* the root exports nothing */
    mtoy_add(t, 1, 1);
    mtoy_string(t, "_toy_");
    mtoy_add(t, 1, 9); /* the offset of the next node */
    mtoy_add(t, 1, 0);
    mtoy_add(t, 1, 3);
    for (int i = 0; i < 3; i++) {
        mtoy_string(t, edges[i]);
        leaf[i] = t->n++;
    }
    for (int i = 0; i < 3; i++) {
        mtoy_put(t, leaf[i], 1, t->n - start);
        mtoy_add(t, 1, 4);
        mtoy_add(t, 1, flags[i]);
        mtoy_add(t, 1, (addresses[i] & 0x7f) | 0x80);
        mtoy_add(t, 1, (addresses[i] >> 7 & 0x7f) | 0x80);
        mtoy_add(t, 1, addresses[i] >> 14);
        mtoy_add(t, 1, 0); /* no children */
    }
    mtoy_align(t, 8);
    t->trie_n = t->n - start;
}

static inline void mtoy_nlist(struct macho_toy *t, uint32_t name, uint8_t type, uint8_t sect,
                              uint16_t desc, uint64_t value)
{
    mtoy_add(t, 4, name);
    mtoy_add(t, 1, type);
    mtoy_add(t, 1, sect);
    mtoy_add(t, 2, desc);
    mtoy_add(t, 8, value);
}

static inline void mtoy_symbols(struct macho_toy *t)
{
    static const char strings[] =
        " \0_toy_func\0_toy_value\0_toy_weak\0_PyFlat\0_PyOptional\0_malloc";
    uint64_t value = MTOY_BASE + t->data + 48;

    t->symbols = t->n;
    mtoy_nlist(t, 2, N_SECT | N_EXT, 1, 0, MTOY_BASE + t->text);
    mtoy_nlist(t, 12, N_SECT | N_EXT, 4, 0, value);
    mtoy_nlist(t, 23, N_SECT | N_EXT, 4, N_WEAK_DEF, value);
    mtoy_nlist(t, 33, N_UNDF | N_EXT, 0, DYNAMIC_LOOKUP_ORDINAL << 8, 0);
    mtoy_nlist(t, 41, N_UNDF | N_EXT, 0, DYNAMIC_LOOKUP_ORDINAL << 8 | N_WEAK_REF, 0);
    mtoy_nlist(t, 53, N_UNDF | N_EXT, 0, 1 << 8, 0);
    t->indirect = t->n;
    mtoy_add(t, 4, 3);
    mtoy_add(t, 4, 5);
    mtoy_add(t, 4, 4);
    mtoy_align(t, 8);
    t->strings = t->n;
    mtoy_bytes(t, strings, sizeof strings);
    mtoy_align(t, 8);
    t->strings_n = t->n - t->strings;
}

/* The layout of a linker's ad hoc signature; its page hashes are zero. */
static inline void mtoy_signature(struct macho_toy *t)
{
    uint32_t pages, hash = 88 + 4;

    t->end = t->n;
    if (t->o.naked)
        return;
    mtoy_align(t, 16);
    t->signature = t->n;
    pages = (uint32_t)(t->n + CS_PAGE_SIZE - 1) / CS_PAGE_SIZE;
    mtoy_add_be(t, 4, CSMAGIC_EMBEDDED_SIGNATURE);
    mtoy_add_be(t, 4, 20 + hash + 32 * pages);
    mtoy_add_be(t, 4, 1);
    mtoy_add_be(t, 4, CSSLOT_CODEDIRECTORY);
    mtoy_add_be(t, 4, 20);
    mtoy_add_be(t, 4, CSMAGIC_CODEDIRECTORY);
    mtoy_add_be(t, 4, hash + 32 * pages);
    mtoy_add_be(t, 4, 0x20400);
    mtoy_add_be(t, 4, CS_ADHOC | CS_LINKER_SIGNED);
    mtoy_add_be(t, 4, hash);
    mtoy_add_be(t, 4, 88);
    mtoy_add_be(t, 4, 0);
    mtoy_add_be(t, 4, pages);
    mtoy_add_be(t, 4, t->signature);
    mtoy_add_be(t, 4, 0x20020000 | 12); /* hash size and type, platform, page size */
    t->n += 24;
    mtoy_add_be(t, 8, 0);
    mtoy_add_be(t, 8, t->data);
    mtoy_add_be(t, 8, 0);
    mtoy_string(t, "toy");
    t->n += 32 * pages;
    mtoy_align(t, 8);
    t->end = t->n;
}

static inline void macho_toy_make(struct macho_toy *t, struct macho_toy_opts o)
{
    *t = (struct macho_toy){.o = o, .page = o.arm ? 0x4000 : 0x1000};
    if (!t->o.imports)
        t->o.imports = DYLD_CHAINED_IMPORT;
    /* The commands' size does not depend on their contents. */
    mtoy_commands(t);
    t->text = (t->n + (o.room ? o.room : 64) + 7) / 8 * 8;
    memset(t->b, 0, t->n);
    t->data = t->page;
    t->linkedit = 2 * t->page;
    t->n = t->linkedit;
    if (o.chained)
        mtoy_fixups(t);
    else
        mtoy_opcodes(t);
    if (o.exports)
        mtoy_trie_of(t, o.exports);
    else
        mtoy_trie(t);
    t->starts = t->n;
    mtoy_uleb(t, t->text);
    t->n = t->starts + 8;
    t->data_in_code = t->n;
    mtoy_symbols(t);
    mtoy_signature(t);
    mtoy_body(t);
    mtoy_header(t);
    t->n = t->end;
}

/* ---- universal files ------------------------------------------------------------------------- */

struct macho_toy_fat {
    uint8_t b[0x40000];
    size_t n;
    uint32_t count;
    bool wide;
};

static inline void mtoy_fat_put(struct macho_toy_fat *t, size_t at, size_t width, uint64_t v)
{
    for (size_t i = 0; i < width; i++)
        t->b[at + i] = (uint8_t)(v >> 8 * (width - 1 - i));
}

/* The offset of the table's entry `i`. */
static inline size_t mtoy_fat_entry(const struct macho_toy_fat *t, uint32_t i)
{
    return 8 + i * (t->wide ? 32 : 20);
}

static inline void mtoy_fat_start(struct macho_toy_fat *t, bool wide)
{
    memset(t, 0, sizeof *t);
    t->wide = wide;
    mtoy_fat_put(t, 0, 4, wide ? FAT_MAGIC_64 : FAT_MAGIC);
}

/* Adds a slice as lipo does, at a multiple of 16 KiB. */
static inline void mtoy_fat_add(struct macho_toy_fat *t, uint32_t cputype, uint32_t cpusubtype,
                                const void *p, size_t n)
{
    size_t e = mtoy_fat_entry(t, t->count), w = t->wide ? 8 : 4;
    size_t at = (t->n + 0x4000) / 0x4000 * 0x4000;

    mtoy_fat_put(t, e, 4, cputype);
    mtoy_fat_put(t, e + 4, 4, cpusubtype);
    mtoy_fat_put(t, e + 8, w, at);
    mtoy_fat_put(t, e + 8 + w, w, n);
    mtoy_fat_put(t, e + 8 + 2 * w, 4, 14);
    mtoy_fat_put(t, 4, 4, ++t->count);
    memcpy(t->b + at, p, n);
    t->n = at + n;
}

static inline void mtoy_fat_add_toy(struct macho_toy_fat *t, const struct macho_toy *slice)
{
    mtoy_fat_add(t, (uint32_t)mtoy_get(slice, 4, 4), (uint32_t)mtoy_get(slice, 8, 4), slice->b,
                 slice->n);
}

#endif
