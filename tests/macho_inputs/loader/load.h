/* A loader of Mach-O files for Linux, to run rewritten ones without a Mac.  It shares no code
 * with the rewriter, so that they cannot share mistakes.  lookup.c lists what it assumes about
 * dyld.  A test tool: any fault ends the program with a message. */
#ifndef TESTS_MACHO_INPUTS_LOAD_H
#define TESTS_MACHO_INPUTS_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
void *take_memory(size_t n); /* zeroed; never freed */

/* ---- one slice, file.c ----------------------------------------------------------------------- */

enum { X86_64 = 0x01000007, ARM64 = 0x0100000c };
enum { MH_EXECUTE = 2, MH_DYLIB = 6, MH_BUNDLE = 8 };
enum { MH_TWOLEVEL = 0x80, MH_WEAK_DEFINES = 0x8000, MH_HAS_TLV = 0x800000 };

struct segment {
    char name[17];
    uint64_t vmaddr, vmsize, fileoff, filesize;
    uint32_t initprot, flags;
};

struct section {
    char name[17], segment[17];
    uint64_t addr, size;
    uint32_t offset, flags, reserved1;
};

enum dylib_kind { LOAD, LOAD_WEAK, REEXPORT, UPWARD };

struct dylib {
    const char *name;
    enum dylib_kind kind;
};

/* Offset and size of something in __LINKEDIT. */
struct blob {
    uint32_t off, size;
};

struct macho {
    const char *path;
    const uint8_t *p;
    uint64_t n;  /* bytes */
    uint64_t at; /* of the slice in its file */
    uint32_t cputype, cpusubtype, filetype, ncmds, sizeofcmds, flags, sdk;
    uint64_t page;  /* alignment that a segment needs */
    uint64_t start; /* vmaddr of the header */
    struct segment segments[32];
    struct section sections[128];
    struct dylib dylibs[255];
    const char *rpaths[64];
    size_t segment_count, section_count, dylib_count, rpath_count;
    const char *id;
    size_t id_count, uuid_count;
    bool has_dyld_info, has_chained;
    struct blob rebase, bind, weak_bind, lazy_bind, trie, chained, function_starts, data_in_code,
        split_info, signature, symbols, strings, indirect;
    uint32_t symbol_count, local_symbols, defined_symbols, undefined_symbols;
};

/* Calls `each` for every slice for x86-64 or arm64; `arch` is NULL or one of the two names. */
void each_slice(const char *path, const char *arch, void (*each)(struct macho *m, void *user),
                void *user);
const char *arch_name(const struct macho *m);

/* All reads are checked against the slice. */
const uint8_t *bytes_at(const struct macho *m, uint64_t off, uint64_t len);
uint16_t get16(const struct macho *m, uint64_t off);
uint32_t get32(const struct macho *m, uint64_t off);
uint64_t get64(const struct macho *m, uint64_t off);
const char *string_at(const struct macho *m, uint64_t off, uint64_t end);
uint64_t offset_of(const struct macho *m, uint64_t vmaddr); /* where in the file */

struct reader {
    const struct macho *m;
    uint64_t at, end;
};
struct reader read_blob(const struct macho *m, struct blob b);
uint8_t read8(struct reader *r);
uint64_t read_uleb(struct reader *r);
int64_t read_sleb(struct reader *r);
const char *read_string(struct reader *r);

/* ---- what the file asks the loader to do, fixups.c and trie.c -------------------------------- */

enum { SELF = 0, MAIN = -1, FLAT = -2, WEAK = -3 };

struct import {
    const char *symbol;
    int ordinal;
    bool weak;        /* may be missing */
    bool weak_stream; /* in LC_DYLD_INFO: if there is no definition, the slot stays as it is */
    int64_t addend;
};

struct fixup {
    bool is_bind;
    uint64_t at;          /* from the header */
    uint64_t target;      /* a rebase; also from the header */
    struct import import; /* bind */
    int64_t addend;       /* a binding's own addend, added to the import's */
};

/* Every fixup, in dyld's order. */
void each_fixup(const struct macho *m, void (*each)(void *user, const struct fixup *f), void *user);
/* Every symbol that the file binds, even if no slot uses it; some more than once. */
void each_import(const struct macho *m, void (*each)(void *user, const struct import *i),
                 void *user);

struct export
{
    char name[512];
    uint64_t flags, address, other; /* address from the header */
    const char *import_name;
};
bool find_export(const struct macho *m, const char *name, struct export *out);
void each_export(const struct macho *m, void (*each)(void *user, const struct export *e),
                 void *user);

/* ---- loaded images, lookup.c and map.c ------------------------------------------------------- */

struct host_symbol {
    const char *name;
    void *address;
    bool weak_def;
};

struct image {
    struct macho *m; /* NULL: a stand-in for a system library */
    const struct host_symbol *host;
    const char *path, *id;
    uint8_t *base; /* where the header is */
    struct image **deps;
    uint64_t device, inode, mtime_ns;
    bool hidden; /* opened with RTLD_LOCAL */
    bool weak_defines, initialised;
};

extern struct image *loaded[256]; /* in dyld's order: state.loaded */
extern size_t loaded_count;
extern struct image *main_image;

struct image *find_loaded(const char *path);
struct image *image_of(struct image *from, const char *name, bool may_be_missing, bool *is_new);
/* The address that `import` binds to in `im`; NULL if it is missing and may be. */
uint8_t *resolve(struct image *im, const struct import *import);
bool image_exports(struct image *im, const char *symbol, bool with_reexports, uint8_t **address,
                   bool *weak_def);

/* Opens a file as dlopen does, or as the main program. */
struct image *open_image(const char *path, bool local, bool is_main);
struct image *map_image(struct macho *m);
void fix_image(struct image *im);
void initialise(struct image *im);
/* Runs the initialisers that a copy withholds from dyld. */
void initialise_withheld(struct image *im);
void set_up_thread_locals(struct image *im);
void tlv_bootstrap(void);

/* The stand-in for macOS's library at `path`; NULL if there is none. */
struct image *system_library(const char *path);

/* ---- checks, check.c, sign.c and unwind.c ---------------------------------------------------- */

/* What the kernel, dyld and Apple's tools require, whether or not loading here needs it. */
void check_slice(const struct macho *m);
/* Consistency within a file, for the linkers' own outputs. */
void check_contents(const struct macho *m);
void check_signature(const struct macho *m);

/* The functions in LC_FUNCTION_STARTS, as ascending offsets from the header. */
struct starts {
    uint64_t *at;
    size_t count;
};
struct starts function_starts(const struct macho *m);
bool is_function(const struct starts *s, uint64_t at);
void check_unwind_info(const struct macho *m, const struct starts *s);

#endif
