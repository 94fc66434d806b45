/* Builds a DLL with every structure that a PE reader reads, at known offsets.  Shares no code with
 * the library.
 *
 * Sections: .text, .data (with zeros beyond its bytes in the file), .rdata, .reloc.  Imports:
 * python311.dll with PyModule_Create2 and Py_BuildValue, KERNEL32.dll with ordinal 12 and
 * GetLastError; WS2_32.dll is a delay import with ordinal 3 and send.  Exports, from ordinal 5:
 * PyInit_toy, also called toy_alias; nothing; the datum toy_state; a function without a name;
 * toy_forward, which is python311's PyLong_Type. */
#ifndef TESTS_UNIT_PE_TOY_H
#define TESTS_UNIT_PE_TOY_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "pe/read/pe_defs.h"

struct pe_toy_opts {
    bool narrow, arm;           /* i386, arm64; else x86-64 */
    bool low;                   /* alignment below a page: addresses are file offsets */
    bool no_lookup;             /* OriginalFirstThunk is 0, as from Borland's linker */
    bool bound;                 /* bound to both DLLs; directory behind the section table */
    bool by_address;            /* narrow: delay imports of version 1 */
    bool symbols;               /* a COFF symbol table behind the sections */
    bool certified;             /* a certificate table at the end */
    bool full;                  /* no slack in any section */
    bool checksum;              /* a right CheckSum, else 0 */
    bool by_ordinal;            /* Py_BuildValue is imported as ordinal 77 */
    size_t room;                /* bytes free behind the section table; 0: more than 400 */
    const char *id;             /* NULL: toy.pyd */
    const char *api;            /* the first DLL imported; NULL: python311.dll */
    const char *delayed;        /* NULL: WS2_32.dll */
    const char *const *exports; /* replace its own; sorted functions, NULL at the end */
    const char *forward;        /* `exports` are forwarded to this DLL, without ".dll" */
};

enum { PTOY_TEXT, PTOY_DATA, PTOY_RDATA, PTOY_RELOC, PTOY_SECTIONS };

struct pe_toy {
    struct pe_toy_opts o;
    uint8_t b[0x20000];
    size_t n;
    size_t word; /* bytes of an address */
    uint64_t base;
    /* File offsets. */
    size_t nt, optional, directories, sections, headers_end, start[PTOY_SECTIONS];
    uint32_t rva[PTOY_SECTIONS], virtual_size[PTOY_SECTIONS];
    size_t imports, lookup[2], iat[2], name[2]; /* of python311.dll and KERNEL32.dll */
    size_t symbol_name;                         /* the hint of PyModule_Create2 */
    size_t delay, delay_lookup, delay_iat, delay_name;
    size_t debug, codeview, tls, load_config;
    size_t exports, functions, names, ordinals, id, forwarder, export_end;
    size_t bound, symbols, strings, certificates;
    uint32_t relocs[32];
    size_t reloc_count;
};

#define PTOY_ID "toy.pyd"
#define PTOY_BUILD_ID "0403020106050807090a0b0c0d0e0f102a" /* in its CodeView record */
enum { PTOY_ORDINAL_BASE = 5, PTOY_FUNCTIONS = 5, PTOY_NAMES = 4, PTOY_TLS_SIZE = 0x18 };

static inline void ptoy_put(struct pe_toy *t, size_t at, size_t width, uint64_t v)
{
    for (size_t i = 0; i < width; i++)
        t->b[at + i] = (uint8_t)(v >> 8 * i);
}

static inline uint64_t ptoy_get(const struct pe_toy *t, size_t at, size_t width)
{
    uint64_t v = 0;

    for (size_t i = 0; i < width; i++)
        v |= (uint64_t)t->b[at + i] << 8 * i;
    return v;
}

static inline size_t ptoy_add(struct pe_toy *t, size_t width, uint64_t v)
{
    size_t at = t->n;

    ptoy_put(t, at, width, v);
    t->n += width;
    return at;
}

static inline size_t ptoy_string(struct pe_toy *t, const char *s)
{
    size_t at = t->n;

    memcpy(t->b + at, s, strlen(s) + 1);
    t->n += strlen(s) + 1;
    return at;
}

static inline void ptoy_align(struct pe_toy *t, size_t align)
{
    t->n = (t->n + align - 1) / align * align;
}

/* The RVA of file offset `at` in a section that has been begun. */
static inline uint32_t ptoy_rva(const struct pe_toy *t, size_t at)
{
    size_t i = PTOY_SECTIONS - 1;

    while (i && (!t->start[i] || at < t->start[i]))
        i--;
    return t->rva[i] + (uint32_t)(at - t->start[i]);
}

/* File offset of data directory `i`: its RVA, then its size. */
static inline size_t ptoy_directory(const struct pe_toy *t, unsigned i)
{
    return t->directories + 8 * (size_t)i;
}

static inline void ptoy_set_directory(struct pe_toy *t, unsigned i, size_t at, size_t size)
{
    ptoy_put(t, ptoy_directory(t, i), 4, ptoy_rva(t, at));
    ptoy_put(t, ptoy_directory(t, i) + 4, 4, size);
}

/* File offset of the header of section `i`. */
static inline size_t ptoy_section(const struct pe_toy *t, size_t i)
{
    return t->sections + SECTION_HEADER_SIZE * i;
}

/* Adds an address, which the loader must relocate. */
static inline size_t ptoy_address(struct pe_toy *t, size_t width, uint32_t rva)
{
    t->relocs[t->reloc_count++] = ptoy_rva(t, t->n);
    return ptoy_add(t, width, t->base + rva);
}

/* ---- sections -------------------------------------------------------------------------------- */

static inline void ptoy_begin(struct pe_toy *t, size_t i)
{
    const uint32_t align = t->o.low ? 0x200 : 0x1000;

    t->start[i] = t->n;
    t->rva[i] = t->o.low ? (uint32_t)t->n
                : i      ? (t->rva[i - 1] + t->virtual_size[i - 1] + align - 1) / align * align
                         : 0x1000;
}

static inline void ptoy_end(struct pe_toy *t, size_t i, uint32_t zeros)
{
    static const char *const names[] = {".text", ".data", ".rdata", ".reloc"};
    static const uint32_t flags[] = {0x60000020, 0xc0000040, 0x40000040, 0x42000040};
    size_t h = ptoy_section(t, i), used = t->n - t->start[i];

    ptoy_align(t, 0x200);
    if (t->o.full) {
        memset(t->b + t->start[i] + used, 0xee, t->n - t->start[i] - used);
        used = t->n - t->start[i];
    }
    t->virtual_size[i] = (uint32_t)used + (t->o.low ? 0 : zeros);
    memcpy(t->b + h, names[i], strlen(names[i]));
    ptoy_put(t, h + 8, 4, t->virtual_size[i]);
    ptoy_put(t, h + 12, 4, t->rva[i]);
    ptoy_put(t, h + 16, 4, t->n - t->start[i]);
    ptoy_put(t, h + 20, 4, t->start[i]);
    ptoy_put(t, h + 36, 4, flags[i]);
}

static inline void ptoy_headers(struct pe_toy *t)
{
    const size_t optional = t->o.narrow ? 96 : 112;
    const size_t table = 24 + optional + 8 * 16 + PTOY_SECTIONS * SECTION_HEADER_SIZE;

    t->headers_end = 0x400;
    t->nt = t->o.room ? t->headers_end - t->o.room - table : 0x80;
    t->optional = t->nt + 24;
    t->directories = t->optional + optional;
    t->sections = t->directories + 8 * 16;
    ptoy_put(t, 0, 2, IMAGE_DOS_SIGNATURE);
    ptoy_put(t, 24, 2, 64);
    ptoy_put(t, DOS_E_LFANEW, 4, t->nt);
    memset(t->b + 64, 0x90, t->nt - 64); /* the MS-DOS stub */
    ptoy_put(t, t->nt, 4, IMAGE_NT_SIGNATURE);
    ptoy_put(t, t->nt + 4, 2,
             t->o.narrow ? IMAGE_FILE_MACHINE_I386
             : t->o.arm  ? IMAGE_FILE_MACHINE_ARM64
                         : IMAGE_FILE_MACHINE_AMD64);
    ptoy_put(t, t->nt + 6, 2, PTOY_SECTIONS);
    ptoy_put(t, t->nt + 8, 4, 0x5f5e1000);
    ptoy_put(t, t->nt + 20, 2, optional + 8 * 16);
    ptoy_put(t, t->nt + 22, 2, IMAGE_FILE_EXECUTABLE_IMAGE | IMAGE_FILE_DLL);
    ptoy_put(t, t->optional, 2,
             t->o.narrow ? IMAGE_NT_OPTIONAL_HDR32_MAGIC : IMAGE_NT_OPTIONAL_HDR64_MAGIC);
    ptoy_put(t, t->optional + (t->o.narrow ? 28 : 24), t->word, t->base);
    ptoy_put(t, t->optional + 32, 4, t->o.low ? 0x200 : 0x1000);
    ptoy_put(t, t->optional + 36, 4, 0x200);
    ptoy_put(t, t->optional + 40, 2, 6);
    ptoy_put(t, t->optional + 48, 2, 6);
    ptoy_put(t, t->optional + 60, 4, t->headers_end);
    ptoy_put(t, t->optional + 68, 2, 2);
    ptoy_put(t, t->optional + 70, 2, 0x160); /* dynamic base, NX */
    ptoy_put(t, t->directories - 4, 4, 16);
    t->n = t->headers_end;
}

/* ---- imports --------------------------------------------------------------------------------- */

/* Adds a hint and a name, padded to an even size. */
static inline size_t ptoy_hint(struct pe_toy *t, const char *name)
{
    size_t at = ptoy_add(t, 2, 0);

    ptoy_string(t, name);
    ptoy_align(t, 2);
    return at;
}

static inline uint64_t ptoy_ordinal(const struct pe_toy *t, unsigned ordinal)
{
    return ordinal | (uint64_t)1 << (8 * t->word - 1);
}

/* Adds a table of two symbols. */
static inline size_t ptoy_thunks(struct pe_toy *t, uint64_t a, uint64_t b)
{
    size_t at = t->n;

    ptoy_add(t, t->word, a);
    ptoy_add(t, t->word, b);
    ptoy_add(t, t->word, 0);
    return at;
}

static inline void ptoy_imports(struct pe_toy *t)
{
    uint64_t thunks[2][2];

    t->name[0] = ptoy_string(t, t->o.api ? t->o.api : "python311.dll");
    t->name[1] = ptoy_string(t, "KERNEL32.dll");
    ptoy_align(t, 2);
    t->symbol_name = ptoy_hint(t, "PyModule_Create2");
    thunks[0][0] = ptoy_rva(t, t->symbol_name);
    thunks[0][1] =
        t->o.by_ordinal ? ptoy_ordinal(t, 77) : ptoy_rva(t, ptoy_hint(t, "Py_BuildValue"));
    thunks[1][0] = ptoy_ordinal(t, 12);
    thunks[1][1] = ptoy_rva(t, ptoy_hint(t, "GetLastError"));
    ptoy_align(t, 8);
    for (int i = 0; i < 2; i++)
        t->iat[i] = ptoy_thunks(t, thunks[i][0], thunks[i][1]);
    ptoy_set_directory(t, IMAGE_DIRECTORY_ENTRY_IAT, t->iat[0], t->n - t->iat[0]);
    for (int i = 0; i < 2 && !t->o.no_lookup; i++)
        t->lookup[i] = ptoy_thunks(t, thunks[i][0], thunks[i][1]);
    t->imports = t->n;
    for (int i = 0; i < 2; i++) {
        ptoy_add(t, 4, t->o.no_lookup ? 0 : ptoy_rva(t, t->lookup[i]));
        ptoy_add(t, 4, t->o.bound ? UINT32_MAX : 0);
        ptoy_add(t, 4, t->o.bound ? UINT32_MAX : 0);
        ptoy_add(t, 4, ptoy_rva(t, t->name[i]));
        ptoy_add(t, 4, ptoy_rva(t, t->iat[i]));
    }
    t->n += IMPORT_DESCRIPTOR_SIZE;
    ptoy_set_directory(t, IMAGE_DIRECTORY_ENTRY_IMPORT, t->imports, t->n - t->imports);
}

/* The bound import directory: two DLLs, a terminator, then their names at offsets from its
 * start. */
static inline void ptoy_bound(struct pe_toy *t)
{
    const char *api = t->o.api ? t->o.api : "python311.dll";
    size_t end = t->n;

    t->bound = t->sections + PTOY_SECTIONS * SECTION_HEADER_SIZE;
    t->n = t->bound;
    for (int i = 0; i < 2; i++) {
        ptoy_add(t, 4, 0x5f5e0ffe);
        ptoy_add(t, 2, i ? 24 + strlen(api) + 1 : 24);
        ptoy_add(t, 2, 0);
    }
    t->n += 8;
    ptoy_string(t, api);
    ptoy_string(t, "KERNEL32.dll");
    ptoy_put(t, ptoy_directory(t, IMAGE_DIRECTORY_ENTRY_BOUND_IMPORT), 4, t->bound);
    ptoy_put(t, ptoy_directory(t, IMAGE_DIRECTORY_ENTRY_BOUND_IMPORT) + 4, 4, t->n - t->bound);
    t->n = end;
}

static inline void ptoy_delay_field(struct pe_toy *t, uint32_t rva)
{
    if (t->o.by_address)
        ptoy_address(t, 4, rva);
    else
        ptoy_add(t, 4, rva);
}

static inline void ptoy_delay_imports(struct pe_toy *t)
{
    size_t hint;

    t->delay_name = ptoy_string(t, t->o.delayed ? t->o.delayed : "WS2_32.dll");
    ptoy_align(t, 2);
    hint = ptoy_hint(t, "send");
    ptoy_align(t, 8);
    t->delay_lookup = ptoy_add(t, t->word, ptoy_ordinal(t, 3));
    if (t->o.by_address)
        ptoy_address(t, 4, ptoy_rva(t, hint));
    else
        ptoy_add(t, t->word, ptoy_rva(t, hint));
    ptoy_add(t, t->word, 0);
    t->delay = ptoy_add(t, 4, !t->o.by_address);
    ptoy_delay_field(t, ptoy_rva(t, t->delay_name));
    ptoy_delay_field(t, t->rva[PTOY_DATA]);
    ptoy_delay_field(t, ptoy_rva(t, t->delay_iat));
    ptoy_delay_field(t, ptoy_rva(t, t->delay_lookup));
    t->n += 12 + DELAY_DESCRIPTOR_SIZE;
    ptoy_set_directory(t, IMAGE_DIRECTORY_ENTRY_DELAY_IMPORT, t->delay, t->n - t->delay);
}

/* ---- exports --------------------------------------------------------------------------------- */

static inline void ptoy_export_header(struct pe_toy *t, size_t functions, size_t names)
{
    ptoy_align(t, 4);
    t->exports = t->n;
    t->functions = t->n + EXPORT_DIRECTORY_SIZE;
    t->names = t->functions + 4 * functions;
    t->ordinals = t->names + 4 * names;
    t->n += 12;
    ptoy_add(t, 4, 0); /* Name: behind the tables */
    ptoy_add(t, 4, PTOY_ORDINAL_BASE);
    ptoy_add(t, 4, functions);
    ptoy_add(t, 4, names);
    ptoy_add(t, 4, ptoy_rva(t, t->functions));
    ptoy_add(t, 4, ptoy_rva(t, t->names));
    ptoy_add(t, 4, ptoy_rva(t, t->ordinals));
    t->n = t->ordinals + 2 * names;
    t->id = ptoy_string(t, t->o.id ? t->o.id : PTOY_ID);
    ptoy_put(t, t->exports + 12, 4, ptoy_rva(t, t->id));
}

static inline void ptoy_export(struct pe_toy *t, size_t i, const char *name, unsigned slot)
{
    ptoy_put(t, t->names + 4 * i, 4, ptoy_rva(t, ptoy_string(t, name)));
    ptoy_put(t, t->ordinals + 2 * i, 2, slot);
}

static inline void ptoy_own_exports(struct pe_toy *t)
{
    ptoy_export_header(t, PTOY_FUNCTIONS, PTOY_NAMES);
    ptoy_export(t, 0, "PyInit_toy", 0);
    ptoy_export(t, 1, "toy_alias", 0);
    ptoy_export(t, 2, "toy_forward", 4);
    ptoy_export(t, 3, "toy_state", 2);
    t->forwarder = ptoy_string(t, "python311.PyLong_Type");
    ptoy_put(t, t->functions, 4, t->rva[PTOY_TEXT] + 16);
    ptoy_put(t, t->functions + 8, 4, t->rva[PTOY_DATA] + 64);
    ptoy_put(t, t->functions + 12, 4, t->rva[PTOY_TEXT] + 32);
    ptoy_put(t, t->functions + 16, 4, ptoy_rva(t, t->forwarder));
}

static inline void ptoy_given_exports(struct pe_toy *t)
{
    size_t count = 0;

    while (t->o.exports[count])
        count++;
    ptoy_export_header(t, count, count);
    for (size_t i = 0; i < count; i++) {
        ptoy_export(t, i, t->o.exports[i], (unsigned)i);
        if (t->o.forward) {
            ptoy_put(t, t->functions + 4 * i, 4, ptoy_rva(t, t->n));
            if (!i)
                t->forwarder = t->n;
            ptoy_string(t, t->o.forward);
            t->b[t->n - 1] = '.';
            ptoy_string(t, t->o.exports[i]);
        } else {
            ptoy_put(t, t->functions + 4 * i, 4, t->rva[PTOY_TEXT] + 16);
        }
    }
}

/* ---- the rest of .rdata, .data and .reloc ---------------------------------------------------- */

static inline void ptoy_data(struct pe_toy *t)
{
    t->n += 16; /* the delay-loaded DLL's handle, the TLS index */
    t->delay_iat = t->n;
    for (uint32_t i = 0; i < 2; i++)
        ptoy_address(t, t->word, t->rva[PTOY_TEXT] + 48 + 8 * i);
    t->n = t->start[PTOY_DATA] + 64;
    for (int i = 0; i < 16; i++)
        ptoy_add(t, 1, (uint64_t)i); /* initial TLS data */
}

static inline void ptoy_tls(struct pe_toy *t)
{
    const uint32_t data = t->rva[PTOY_DATA];

    t->tls = t->n;
    ptoy_address(t, t->word, data + 64);
    ptoy_address(t, t->word, data + 80);
    ptoy_address(t, t->word, data + 8);
    ptoy_add(t, t->word, 0);
    ptoy_add(t, 4, PTOY_TLS_SIZE - 16);
    ptoy_add(t, 4, 0);
    ptoy_set_directory(t, IMAGE_DIRECTORY_ENTRY_TLS, t->tls, t->n - t->tls);
}

static inline void ptoy_debug(struct pe_toy *t)
{
    static const uint8_t guid[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    const char *path = "C:\\build\\toy.pdb";
    const uint32_t size = 24 + (uint32_t)strlen(path) + 1;

    t->debug = t->n;
    for (int i = 0; i < 2; i++) { /* an entry of another type, then a CodeView record */
        ptoy_add(t, 4, 0);
        ptoy_add(t, 4, 0x5f5e1000);
        ptoy_add(t, 4, 0);
        ptoy_add(t, 4, i ? 2 : 12);
        ptoy_add(t, 4, i ? size : 0);
        ptoy_add(t, 4, i ? ptoy_rva(t, t->debug + 2 * DEBUG_DIRECTORY_SIZE) : 0);
        ptoy_add(t, 4, i ? t->debug + 2 * DEBUG_DIRECTORY_SIZE : 0);
    }
    ptoy_set_directory(t, IMAGE_DIRECTORY_ENTRY_DEBUG, t->debug, t->n - t->debug);
    t->codeview = t->n;
    memcpy(t->b + t->n, "RSDS", 4);
    memcpy(t->b + t->n + 4, guid, 16);
    t->n += 20;
    ptoy_add(t, 4, 0x2a);
    ptoy_string(t, path);
}

static inline void ptoy_load_config(struct pe_toy *t)
{
    const size_t size = t->o.narrow ? 0xa4 : 0x118;

    ptoy_align(t, 8);
    t->load_config = t->n;
    ptoy_put(t, t->n, 4, size);
    ptoy_put(t, t->n + (t->o.narrow ? 54 : 78), 2, 0x800);
    t->n += size;
    ptoy_set_directory(t, IMAGE_DIRECTORY_ENTRY_LOAD_CONFIG, t->load_config, size);
}

static inline void ptoy_rdata(struct pe_toy *t)
{
    ptoy_tls(t);
    ptoy_imports(t);
    ptoy_delay_imports(t);
    ptoy_debug(t);
    ptoy_load_config(t);
    if (t->o.exports)
        ptoy_given_exports(t);
    else
        ptoy_own_exports(t);
    t->export_end = t->n;
    ptoy_set_directory(t, IMAGE_DIRECTORY_ENTRY_EXPORT, t->exports, t->n - t->exports);
}

/* Addresses are ascending; each page has a block. */
static inline void ptoy_relocs(struct pe_toy *t)
{
    size_t block = 0, start = t->n;

    for (size_t i = 0; i < t->reloc_count; i++) {
        uint32_t page = t->relocs[i] & ~0xfffu;

        if (!block || ptoy_get(t, block, 4) != page) {
            ptoy_align(t, 4);
            block = ptoy_add(t, 4, page);
            ptoy_add(t, 4, 8);
        }
        ptoy_add(t, 2, (t->relocs[i] & 0xfff) | (t->o.narrow ? 3u : 10u) << 12);
        ptoy_put(t, block + 4, 4, (t->n - block + 3) / 4 * 4);
    }
    ptoy_align(t, 4);
    ptoy_set_directory(t, IMAGE_DIRECTORY_ENTRY_BASERELOC, start, t->n - start);
}

/* ---- behind the sections --------------------------------------------------------------------- */

static inline void ptoy_symbols(struct pe_toy *t)
{
    t->symbols = t->n;
    ptoy_put(t, t->nt + 12, 4, t->symbols);
    ptoy_put(t, t->nt + 16, 4, 2);
    for (int i = 0; i < 2; i++) {
        memcpy(t->b + t->n, i ? "\0\0\0\0\4\0\0\0" : ".text\0\0\0", 8);
        t->n += 8;
        ptoy_add(t, 4, 16);
        ptoy_add(t, 2, 1);
        ptoy_add(t, 2, i ? 0x20 : 0);
        ptoy_add(t, 1, i ? 2 : 3);
        ptoy_add(t, 1, 0);
    }
    t->strings = ptoy_add(t, 4, 4 + sizeof "PyInit_toy_long");
    ptoy_string(t, "PyInit_toy_long");
}

static inline void ptoy_certificates(struct pe_toy *t)
{
    ptoy_align(t, 8);
    t->certificates = ptoy_add(t, 4, 0x48);
    ptoy_add(t, 2, 0x200);
    ptoy_add(t, 2, 2);
    memset(t->b + t->n, 0x30, 0x40);
    t->n += 0x40;
    ptoy_put(t, ptoy_directory(t, IMAGE_DIRECTORY_ENTRY_SECURITY), 4, t->certificates);
    ptoy_put(t, ptoy_directory(t, IMAGE_DIRECTORY_ENTRY_SECURITY) + 4, 4, 0x48);
}

/* Adds 16-bit words one by one, and the carry after each, as the original algorithm does. */
static inline uint32_t ptoy_checksum(const uint8_t *p, size_t n, size_t field)
{
    uint32_t sum = 0;

    for (size_t i = 0; i < n; i += 2) {
        uint32_t lo = i - field < 4 ? 0 : p[i];
        uint32_t hi = i + 1 - field < 4 || i + 1 >= n ? 0 : p[i + 1];

        sum += lo | hi << 8;
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return sum + (uint32_t)n;
}

static inline void pe_toy_make(struct pe_toy *t, struct pe_toy_opts o)
{
    memset(t, 0, sizeof *t);
    t->o = o;
    t->word = o.narrow ? 4 : 8;
    t->base = o.narrow ? 0x10000000 : 0x180000000;
    ptoy_headers(t);
    for (size_t i = 0; i < PTOY_SECTIONS; i++) {
        ptoy_begin(t, i);
        if (i == PTOY_TEXT) {
            memset(t->b + t->n, 0xc3, 0x100);
            t->n += 0x100;
        } else if (i == PTOY_DATA) {
            ptoy_data(t);
        } else if (i == PTOY_RDATA) {
            ptoy_rdata(t);
        } else {
            ptoy_relocs(t);
        }
        ptoy_end(t, i, i == PTOY_DATA ? 0x800 : 0);
    }
    ptoy_put(t, t->optional + 56, 4,
             (t->rva[PTOY_RELOC] + t->virtual_size[PTOY_RELOC] + 0xfff) / 0x1000 * 0x1000);
    if (o.low)
        ptoy_put(t, t->optional + 56, 4, t->n);
    if (o.bound)
        ptoy_bound(t);
    if (o.symbols)
        ptoy_symbols(t);
    if (o.certified)
        ptoy_certificates(t);
    if (o.checksum)
        ptoy_put(t, t->optional + 64, 4, ptoy_checksum(t->b, t->n, t->optional + 64));
}

#endif
