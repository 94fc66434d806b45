/* One thin Mach-O file, validated, with its load commands decoded: what every part of macho/ works
 * on.
 *
 * read/ decodes files and describes them.  It uses base/ alone; edit/ and check/ build on it.
 *
 * A slice of a universal file has a span of its own: offsets in it count from the slice's start,
 * and span.base lets messages report offsets in the whole file. */
#ifndef MACHO_READ_MACHO_FILE_H
#define MACHO_READ_MACHO_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "macho/read/macho_defs.h"

struct macho_command {
    uint32_t cmd;
    uint64_t at;        /* offset in the slice */
    struct exti_span s; /* the whole command, cmd and cmdsize included */
};

struct macho_segment {
    size_t command; /* index of its LC_SEGMENT_64 */
    char name[17];
    uint64_t vmaddr, vmsize, fileoff, filesize;
    uint32_t maxprot, initprot, flags;
    size_t first_section, section_count; /* in macho_file.sections */
};

struct macho_section {
    uint64_t at; /* offset of its section_64 in the slice */
    char name[17], segment[17];
    uint64_t addr, size;
    uint32_t offset, align, reloff, nreloc, flags, reserved1, reserved2;
};

/* One LC_LOAD_DYLIB or similar, in command order; bindings name the n-th by the ordinal n, from
 * 1. */
struct macho_dylib {
    size_t command;
    const char *name;
    uint32_t timestamp, current_version, compatibility_version;
};

/* The tables in __LINKEDIT, in the order that Apple's tools require (cctools checkout.c,
 * dyld_order). */
enum macho_piece_kind {
    MACHO_REBASE,
    MACHO_BIND,
    MACHO_WEAK_BIND,
    MACHO_LAZY_BIND,
    MACHO_EXPORT, /* LC_DYLD_INFO's trie */
    MACHO_CHAINED_FIXUPS,
    MACHO_EXPORTS_TRIE,
    MACHO_LOCAL_RELOCS,
    MACHO_SPLIT_INFO,
    MACHO_FUNCTION_STARTS,
    MACHO_DATA_IN_CODE,
    MACHO_CODE_SIGN_DRS,
    MACHO_OPTIMIZATION_HINT,
    MACHO_ATOM_INFO,
    MACHO_FUNCTION_VARIANTS,
    MACHO_FUNCTION_VARIANT_FIXUPS,
    MACHO_SYMBOLS,
    MACHO_TWOLEVEL_HINTS,
    MACHO_EXTERNAL_RELOCS,
    MACHO_INDIRECT_SYMBOLS,
    MACHO_TOC,
    MACHO_MODULES,
    MACHO_EXTERNAL_REFS,
    MACHO_STRINGS,
    MACHO_SIGNATURE,
    MACHO_PIECES
};

/* One table of __LINKEDIT: the fields of a load command that locate it, and its bytes. */
struct macho_piece {
    bool present;     /* a command has fields for it, though `s` may be empty */
    size_t command;   /* index of that command */
    uint32_t off_at;  /* offset in the command of the table's offset field */
    uint32_t size_at; /* ... and of its size or count field */
    uint32_t unit;    /* bytes per count; 1 if the field is a size */
    struct exti_span s;
};

struct macho_file {
    struct exti_span file;
    uint32_t cputype, cpusubtype, filetype, sizeofcmds, flags;

    struct macho_command *commands;
    size_t command_count;
    struct macho_segment *segments;
    size_t segment_count;
    struct macho_section *sections;
    size_t section_count;
    struct macho_dylib *dylibs;
    size_t dylib_count;
    const char **rpaths;
    size_t rpath_count;

    const char *id;                       /* NULL: none */
    const uint8_t *uuid;                  /* 16 bytes, NULL: none */
    uint32_t platform, minos, sdk;        /* xxxx.yy.zz as in LC_BUILD_VERSION; 0: unknown */
    const struct macho_segment *text;     /* __TEXT: file offset 0; never NULL */
    const struct macho_segment *linkedit; /* __LINKEDIT: last in the file; never NULL */
    struct macho_piece pieces[MACHO_PIECES];

    uint64_t commands_end; /* MACH_HEADER_64_SIZE + sizeofcmds */
    uint64_t room_end;     /* where the space for load commands ends */
    uint64_t page;         /* 0x4000 for arm64, 0x1000 for x86-64 */
};

/* Opens and validates one thin file, so that edits can rely on its structure.  EXTI_E_FORMAT for
 * malformed files; EXTI_E_UNSUPPORTED for well-formed ones of other kinds (32-bit, big-endian,
 * object files), which the message names.  `file` must outlive `f`.  On failure there is nothing
 * to close. */
int exti__macho_open(struct exti_span file, struct macho_file *f, struct exti_error *err);
void exti__macho_close(struct macho_file *f);

#endif
