/* One thin Mach-O file opened for reading, and the pieces of the Mach-O format's own operations.
 *
 * A fat file's slice is a span of its own: every offset in it counts from the slice's start, and
 * span.base makes error messages tell offsets in the whole file. */
#ifndef MACHO_READ_MACHO_PRIV_H
#define MACHO_READ_MACHO_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/format.h"
#include "base/plan.h"
#include "base/span.h"
#include "macho/read/macho_defs.h"

/* ---- the file, macho_read.c ---------------------------------------------------------------------- */

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

/* One LC_LOAD_DYLIB or its like, in command order: the n-th has the ordinal n, from 1. */
struct macho_dylib {
    size_t command;
    const char *name;
    uint32_t timestamp, current_version, compatibility_version;
};

/* What __LINKEDIT holds, in the order in which Apple's tools require it (cctools checkout.c,
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

/* A command's pair of offset and size, and the bytes it stands for. */
struct macho_piece {
    bool present;     /* a command has fields for it; `s` may be empty all the same */
    size_t command;   /* index of that command */
    uint32_t off_at;  /* where in the command its offset stands */
    uint32_t size_at; /* ... and its size or count */
    uint32_t unit;    /* bytes that one of that count stands for: 1 for a size */
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
    uint32_t platform, minos, sdk;        /* xxxx.yy.zz as in LC_BUILD_VERSION; 0: not told */
    const struct macho_segment *text;     /* __TEXT: file offset 0; never NULL */
    const struct macho_segment *linkedit; /* __LINKEDIT: last in the file; never NULL */
    struct macho_piece pieces[MACHO_PIECES];

    uint64_t commands_end; /* MACH_HEADER_64_SIZE + sizeofcmds */
    uint64_t room_end;     /* the first offset behind the header that something else occupies */
    uint64_t page;         /* 0x4000 for arm64, 0x1000 for x86-64 */
};

/* Opens and validates one thin file: all that an edit relies on.  EXTI_E_FORMAT for malformed files;
 * EXTI_E_UNSUPPORTED for well-formed ones of another kind (32-bit, big-endian, object files, main
 * programs are all told apart in the message).  `file` must outlive `f`.  On failure nothing is left to
 * close. */
int exti__macho_open(struct exti_span file, struct macho_file *f, struct exti_error *err);
void exti__macho_close(struct macho_file *f);

/* "x86-64", "arm64", "arm64e", "i386", "PowerPC", ... or "unknown"; static. */
const char *exti__macho_arch(uint32_t cputype, uint32_t cpusubtype);
/* Whether 64-bit little-endian files for it can be rewritten. */
bool exti__macho_arch_handled(uint32_t cputype, uint32_t cpusubtype);

/* The file's bytes for `len` bytes at `vmaddr`, all within the file part of one segment. */
int exti__macho_at(const struct macho_file *f, uint64_t vmaddr, uint64_t len, const char *what,
                   struct exti_span *out, struct exti_error *err);

/* ---- fat files, macho_fat.c ---------------------------------------------------------------------- */

struct macho_slice {
    uint32_t cputype, cpusubtype, align; /* align: a power of two's exponent */
    uint64_t offset, size;
    struct exti_span s; /* base is the offset in the fat file */
};

struct macho_fat {
    bool wide;       /* FAT_MAGIC_64 */
    bool hidden;     /* the last slice is not counted by nfat_arch (dyld's peek past the table) */
    uint64_t at_end; /* end of the table */
    struct macho_slice *slices;
    size_t count;
};

/* A thin file gives one slice with at_end 0.  Checks what dyld's Universal::valid checks. */
int exti__macho_fat_open(struct exti_span file, struct macho_fat *fat, struct exti_error *err);
void exti__macho_fat_close(struct macho_fat *fat);

/* The slice that a process has from `fat` beside code for that architecture; NULL: none.  Intel's
 * processors since 2013 take x86-64h slices first and x86-64 ones as well, in one process. */
const struct macho_slice *exti__macho_slice_for(const struct macho_fat *fat, uint32_t cputype,
                                                uint32_t cpusubtype);

/* Whether the rewriter handles this slice: 64-bit little-endian x86-64 or arm64 (arm64e without a page
 * shift).  Others are carried over as they are. */
bool exti__macho_slice_handled(const struct macho_slice *slice);

/* ---- ULEB128, macho_leb.c ------------------------------------------------------------------------- */

/* Reads from a cursor; a number past 64 bits fails the cursor as a read past the end does. */
uint64_t exti__macho_uleb(struct exti_cur *c);
int64_t exti__macho_sleb(struct exti_cur *c);
/* The NUL-terminated string at the cursor, which moves behind it; "" and failed without a NUL. */
const char *exti__macho_cur_cstr(struct exti_cur *c);
int exti__macho_put_uleb(struct exti_buf *b, uint64_t v, struct exti_error *err);
int exti__macho_put_sleb(struct exti_buf *b, int64_t v, struct exti_error *err);

/* ---- exports trie, macho_trie.c ------------------------------------------------------------------- */

struct macho_export {
    const char *name;
    uint64_t flags;          /* EXPORT_SYMBOL_FLAGS_* */
    uint64_t address;        /* from the image's start; 0 for a re-export */
    uint64_t other;          /* resolver's address, function variant, or a re-export's ordinal */
    const char *import_name; /* of a re-export; "" means the same name */
};

/* The exports trie, wherever the file has it; empty if it has none. */
struct exti_span exti__macho_trie(const struct macho_file *f);

/* Bytes that a walk's names may add up to: one whose nodes tell long names again and again could make
 * it take, and those who keep them need, the trie's size squared. */
uint64_t exti__macho_trie_names_limit(struct exti_span trie);

/* Calls `each` with every export, in trie order, until it returns non-zero, which is passed on.  The
 * strings live during the call.  Time is bounded by the trie's size: a node reached twice is an error. */
int exti__macho_trie_walk(struct exti_span trie,
                          int (*each)(void *user, const struct macho_export *e,
                                      struct exti_error *err),
                          void *user, struct exti_error *err);

/* Looks `name` up as dyld does; *found tells.  out->name is `name`.  `out` may be NULL. */
int exti__macho_trie_find(struct exti_span trie, const char *name, bool *found,
                          struct macho_export *out, struct exti_error *err);

/* macho_trie_build.c: writes a trie for `list`, laid out and padded to 8 bytes as ld64.lld does.  What a
 * walk tells, in its order, gives the bytes that were walked.  Names that are there twice are
 * EXTI_E_FORMAT, function variants EXTI_E_UNSUPPORTED. */
int exti__macho_trie_build(const struct macho_export *list, size_t count, struct exti_buf *out,
                           struct exti_error *err);

/* Writes `trie` anew with each export as `edit` leaves it, which may not change the name. */
int exti__macho_trie_map(struct exti_span trie,
                         int (*edit)(void *user, struct macho_export *e, struct exti_error *err),
                         void *user, struct exti_buf *out, struct exti_error *err);

/* ---- LC_DYLD_INFO opcodes, macho_bind.c ------------------------------------------------------------ */

struct macho_bind {
    const char *symbol; /* in the file's bytes */
    int64_t addend;
    uint64_t offset; /* in its segment */
    uint32_t segment;
    int32_t ordinal;     /* BIND_SPECIAL_DYLIB_* or from 1; meaningless in the weak stream */
    uint8_t type, flags; /* BIND_TYPE_*, BIND_SYMBOL_FLAGS_* */
    bool is_override;    /* weak stream: a NON_WEAK_DEFINITION mark, which binds nothing */
    uint64_t at;         /* slice offset of the opcode that set the ordinal (or symbol) */
};

/* Runs the stream of `kind` (MACHO_BIND, MACHO_WEAK_BIND or MACHO_LAZY_BIND) as dyld does and calls
 * `each` for every binding, in order.  Bounded: no stream may bind more often than the image has
 * pointer-sized slots per opcode byte allows (hostile repeat counts are EXTI_E_FORMAT).  arm64e's
 * threaded opcodes are EXTI_E_UNSUPPORTED. */
int exti__macho_binds(const struct macho_file *f, enum macho_piece_kind kind,
                      int (*each)(void *user, const struct macho_bind *b, struct exti_error *err),
                      void *user, struct exti_error *err);

/* Appends the opcodes of an eager stream for `list`, without the final DONE.  In the given order; the
 * symbol is named again whenever ordinal or symbol change (dyld opens a new target only then). */
int exti__macho_bind_encode(const struct macho_bind *list, size_t count, bool weak,
                            struct exti_buf *out, struct exti_error *err);

/* macho_rebase.c: calls `each` with every rebased slot: segment, offset in it, REBASE_TYPE_*. */
int exti__macho_rebases(const struct macho_file *f,
                        int (*each)(void *user, uint32_t segment, uint64_t offset, uint8_t type,
                                    struct exti_error *err),
                        void *user, struct exti_error *err);

/* ---- chained fixups, macho_chained.c --------------------------------------------------------------- */

struct macho_import {
    const char *name;
    int32_t ordinal;
    bool weak;
    int64_t addend;
    uint64_t at; /* slice offset of its entry */
};

struct macho_chained {
    struct exti_span s; /* the whole LC_DYLD_CHAINED_FIXUPS payload */
    uint64_t at;        /* slice offset of it */
    uint32_t starts_offset, imports_offset, symbols_offset, imports_count, imports_format;
};

int exti__macho_chained_open(const struct macho_file *f, struct macho_chained *c,
                             struct exti_error *err);
int exti__macho_chained_import(const struct macho_chained *c, uint32_t i, struct macho_import *out,
                               struct exti_error *err);

/* Writes the payload anew with `ordinals[i]` for import i: in place where they fit the format, else the
 * import table becomes DYLD_CHAINED_IMPORT_ADDEND64.  `out` is empty. */
int exti__macho_chained_set_ordinals(const struct macho_chained *c, const int32_t *ordinals,
                                     struct exti_buf *out, struct exti_error *err);

struct macho_fixup {
    uint64_t offset; /* of the slot in the slice */
    uint64_t raw;
    uint16_t format; /* DYLD_CHAINED_PTR_* */
    bool is_bind;
    uint32_t import; /* is_bind */
    int64_t addend;  /* is_bind: the slot's own, beside the import's */
    uint64_t target; /* a rebase's target: from the image's start, without its high byte */
};

/* macho_fixups.c: calls `each` with every slot of every chain, in file order per segment.  Bounded by the pages' sizes. */
int exti__macho_fixups(const struct macho_file *f, const struct macho_chained *c,
                       int (*each)(void *user, const struct macho_fixup *x, struct exti_error *err),
                       void *user, struct exti_error *err);

/* ---- symbol table, macho_symbols.c ----------------------------------------------------------------- */

struct macho_nlist {
    const char *name;
    uint8_t type, sect;
    uint16_t desc;
    uint64_t value;
    uint64_t at; /* slice offset of its nlist_64 */
};

size_t exti__macho_symbol_count(const struct macho_file *f);
int exti__macho_symbol(const struct macho_file *f, size_t i, struct macho_nlist *out,
                       struct exti_error *err);

/* An undefined symbol, and the library that it names: BIND_SPECIAL_DYLIB_* or from 1. */
bool exti__macho_is_undefined(const struct macho_nlist *n);
int32_t exti__macho_nlist_ordinal(const struct macho_file *f, const struct macho_nlist *n);

/* One reference by name to something outside, whichever way the file binds. */
struct macho_reference {
    const char *name;
    int32_t ordinal; /* BIND_SPECIAL_DYLIB_* or from 1 */
    bool weak_import;
    uint64_t at; /* slice offset of the import entry or opcode */
};

/* macho_references.c: calls `each` once for every distinct name, library and weakness by which dyld
 * binds the image: chained imports, or the opcode streams' symbols, the weak stream's as
 * BIND_SPECIAL_DYLIB_WEAK_LOOKUP; or, in a file with neither, the undefined symbols. */
int exti__macho_references(const struct macho_file *f,
                           int (*each)(void *user, const struct macho_reference *r,
                                       struct exti_error *err),
                           void *user, struct exti_error *err);

/* ---- ad hoc signature, macho_sign.c ------------------------------------------------------------------ */

/* What is kept of the old signature. */
struct macho_signature {
    bool present, linker_signed, has_cms;
    const char *identifier, *team;
    uint32_t code_dir_flags, page_shift;
    uint64_t code_limit;
    struct exti_span requirements, entitlements, der_entitlements; /* n 0: none */
    struct exti_span code_directory;
};
int exti__macho_signature_read(const struct macho_file *f, struct macho_signature *out,
                               struct exti_error *err);

/* Bytes of the signature that exti__macho_sign will append for a slice of `code_limit` bytes. */
uint64_t exti__macho_signature_size(const struct macho_signature *old, const char *identifier,
                                    uint64_t code_limit);

/* Appends the signature for the slice whose bytes `parts` are, one behind the other. */
int exti__macho_sign(const struct macho_signature *old, const char *identifier,
                     const struct exti_span *parts, size_t count, uint64_t exec_seg_limit,
                     uint32_t exec_seg_flags, struct exti_buf *out, struct exti_error *err);

/* Checks the page hashes of a signed slice: offset of the first page that differs, or EXTI_NO_OFFSET. */
int exti__macho_signature_check(const struct macho_file *f, uint64_t *bad, struct exti_error *err);

/* Bytes that the names of what is looked up may add up to: overlapping names could otherwise make
 * comparing them take the file's size squared. */
uint64_t exti__macho_names_limit(const struct macho_file *f);

/* ---- the rewrite in the making, macho_plan.c -------------------------------------------------------- */

/* A copy of one slice being put together.  Load commands, __LINKEDIT pieces and, when the page shift
 * moves it, the body between them are edited apart and laid out last. */
struct macho_build {
    const struct macho_file *f;
    const struct exti_rewrite_opts *opts;
    /* For this architecture: the slice of opts->bind_file, then of the libraries it re-exports.  None:
     * nothing is bound anew. */
    const struct exti_span *bind;
    size_t bind_count;
    bool *
        found; /* of a universal file: which of opts->needed some slice has to do with; else NULL */

    struct macho_signature signature; /* the slice's own */
    const char *identifier;           /* for the new one: the old one's, else one from the id */

    /* macho_commands.c */
    struct exti_buf commands; /* the new load commands, without the header */
    uint32_t command_count, header_flags;
    int32_t bind_ordinal; /* of opts->bind_name in the new list; SELF for the file itself */
    int32_t *ordinals;    /* owned: new ordinal of old ordinal i+1; 0 where it was removed */
    bool resign;          /* the copy gets a signature */

    /* pieces that changed; others are the file's own */
    struct {
        bool replaced;
        struct exti_buf data;
    } pieces[MACHO_PIECES];

    /* macho_shift.c */
    uint64_t shift; /* how far all behind the header moves; a multiple of 0x4000; 0: stays */
    /* With a shift: the slice from room_end to __LINKEDIT, edited.  The copy is the header and commands
     * padded to `shift` bytes, the second header padded to room_end bytes, this, and the new
     * __LINKEDIT. */
    struct exti_buf body;
};

/* macho_needed.c: says that a library to be replaced or removed is not there. */
int exti__macho_fail_needed(const struct exti_needed *op, struct exti_error *err);

/* macho_build.c: makes piece `kind` an empty buffer to be filled, of at most `max`
 * bytes. */
struct exti_buf *exti__macho_piece_new(struct macho_build *b, enum macho_piece_kind kind,
                                       size_t max);
/* The piece's bytes as they stand now. */
struct exti_span exti__macho_piece(const struct macho_build *b, enum macho_piece_kind kind);

/* macho_commands.c: applies id, needed and search path edits, in the order shortest change first until
 * the commands fit `f->room_end` (notes of the room ladder are in the file), and sets `shift` when
 * nothing else does.  With a shift, commands are those of the file's layout before it. */
int exti__macho_edit_commands(struct macho_build *b, struct exti_error *err);

/* macho_rebind.c: binds what is flat or looks in the main program to bind_ordinal if one of `bind`
 * exports it, keeps own weak definitions to the file itself (EXTI_RW_CLEAR_UNIQUE), renumbers ordinals where
 * dependencies were removed, and keeps nlist entries in step. */
int exti__macho_rebind(struct macho_build *b, struct exti_error *err);

/* macho_shift.c: moves all behind the header by b->shift.  Refuses (EXTI_E_UNSUPPORTED, naming the
 * command, section or fixup format) what it does not know how to move. */
int exti__macho_shift(struct macho_build *b, struct exti_error *err);

/* Appends what stands at offset `shift` of the copy: the new header and load commands once more, as an
 * image that begins there, padded to f->room_end bytes.  Code that takes the address of its own Mach-O
 * header gets this one.  Call it when b->commands are final but for the signature's bytes. */
int exti__macho_second_header(const struct macho_build *b, struct exti_buf *out,
                              struct exti_error *err);

/* macho_linkedit.c: lays the pieces out in canonical order without holes, and writes offsets, sizes and
 * __LINKEDIT's own into b->commands.  `out` is the new __LINKEDIT up to the signature, padded to its
 * alignment; *fileoff is where it goes in the slice. */
int exti__macho_linkedit(struct macho_build *b, struct exti_buf *out, uint64_t *fileoff,
                         struct exti_error *err);

/* ---- the format's operations (loader/base/format.h) ------------------------------------------------- */

int exti__macho_read(struct exti_span file, struct exti_image *im, struct exti_error *err);
int exti__macho_plan(struct exti_span file, const struct exti_request *req, struct exti_plan *plan,
                     struct exti_error *err);
int exti__macho_check(struct exti_span before, struct exti_span after,
                      const struct exti_request *req, const struct exti_plan *plan,
                      exti_report_fn report, void *user, struct exti_error *err);

#endif
