/* The judge of rewritten copies.  Files are opened by the common reader; what a rewrite changes
 * (binding opcodes, chains, imports, the exports trie, signatures, unwind tables) is decoded
 * here a second time, so that a fault of the rewriter's decoders is not hidden by the same fault
 * in the judge's. */
#ifndef MACHO_CHECK_MACHO_CHECK_PRIV_H
#define MACHO_CHECK_MACHO_CHECK_PRIV_H

#include "base/error.h"
#include "base/findings.h"
#include "macho/read/macho_priv.h"

#define MACHO_SDK(major, minor) ((uint32_t)(major) << 16 | (uint32_t)(minor) << 8)
#define MACHO_NO_DYLIB SIZE_MAX

/* ---- decoded tables -------------------------------------------------------------------------- */

enum macho_stream {
    MACHO_STREAM_REBASE,
    MACHO_STREAM_BIND,
    MACHO_STREAM_LAZY,
    MACHO_STREAM_WEAK,
    MACHO_STREAM_CHAIN
};

/* One place that dyld writes to. */
struct macho_slot {
    uint64_t at;        /* from the image's start */
    const char *symbol; /* NULL: a rebase */
    int64_t addend;
    int32_t ordinal;
    uint32_t opcode; /* where in its stream the last segment opcode stands; a chain: unused */
    uint32_t order;  /* in which dyld comes to it */
    uint8_t stream, type, flags;
};
struct macho_slots {
    struct macho_slot *v;
    size_t n, cap;
};

struct macho_exported {
    size_t name; /* in names.p; the pointer once the list is complete */
    const char *text;
    uint64_t flags, address, other;
    const char *import_name;
};
/* Sorted by name. */
struct macho_exports {
    struct macho_exported *v;
    size_t n, cap;
    struct exti_buf names;
};

struct macho_imports {
    struct macho_import *v;
    size_t n;
};

/* One dyld_chained_starts_in_segment. */
struct macho_starts {
    uint64_t at; /* in the payload */
    uint32_t segment, size, max_valid_pointer;
    uint16_t page_size, format, page_count;
    uint64_t segment_offset;
    struct exti_span page_start;
};
struct macho_chain_table {
    struct exti_span s;
    uint32_t starts_offset, imports_offset, symbols_offset, imports_format;
    struct macho_imports imports;
    struct macho_starts *starts;
    size_t starts_count;
};

/* A 4 or 8 byte number in the original that holds an address and moves with a page shift. */
struct macho_word {
    uint64_t at; /* slice offset */
    uint8_t size;
};
struct macho_words {
    struct macho_word *v;
    size_t n, cap;
};

/* ---- the check of one slice ------------------------------------------------------------------ */

/* A library that the copy has to need. */
struct macho_want {
    const char *name;
    size_t from; /* the original's that it was, or MACHO_NO_DYLIB */
    uint32_t cmd;
};

/* What the edits make of the original's lists. */
struct macho_expect {
    const char *id;
    struct macho_want *needed; /* owned */
    const char **named;  /* owned; what each library of the original is called, NULL: removed */
    const char **rpaths; /* owned; none twice */
    char **strings;      /* owned, as are its strings: what was spelt anew */
    size_t needed_count, rpath_count, string_count;
    int32_t bind_ordinal; /* of what flat references are bound to */
};

/* An undefined symbol's name, and the number of the library that it was linked against. */
struct macho_linked {
    const char *name;
    uint32_t library;
};

struct macho_check {
    struct macho_file before, after;
    const struct exti_rewrite_opts *opts; /* NULL: any difference that a copy may have */
    const struct exti_plan *plan;         /* NULL for a slice of a fat file as well */
    const struct exti_span *bind;         /* whole files */
    size_t bind_count;
    uint64_t shift;             /* by how much all behind the header moved */
    bool same_dylibs;           /* no ordinal changes its meaning */
    struct macho_expect expect; /* meaningful with opts */

    bool own_known, provided_known;
    struct macho_exports own;      /* what the original exports itself */
    struct macho_exports provided; /* what `bind` exports */

    bool linked_known;
    struct macho_linked *linked; /* owned; by name */
    size_t linked_count;

    struct exti_findings judge;
};

/* A rule about one file, whether it is a copy or not. */
struct macho_check_rule {
    const char *name;
    int (*run)(struct macho_check *c, const struct macho_file *f, struct exti_error *err);
};
extern const struct macho_check_rule exti__macho_rules[];
extern const size_t exti__macho_rule_count;

/* What the copy must have in common with the original. */
struct macho_check_step {
    const char *name;
    int (*run)(struct macho_check *c, struct exti_error *err);
};
extern const struct macho_check_step exti__macho_steps[];
extern const size_t exti__macho_step_count;

/* Opens both; fails when `before` cannot be read or memory is out.  When `after` is not sound,
 * reports that and leaves *sound false.  Close in any case but failure. */
int exti__macho_check_open(struct macho_check *c, struct exti_span before, struct exti_span after,
                           bool *sound, struct exti_error *err);
void exti__macho_check_close(struct macho_check *c);
int exti__macho_check_rules(struct macho_check *c, struct exti_error *err);
int exti__macho_check_steps(struct macho_check *c, struct exti_error *err);

/* `at` is an offset in the slice or EXTI_NO_OFFSET. */
void exti__macho_finding(struct macho_check *c, uint64_t at, const char *fmt, ...)
    EXTI_PRINTF(3, 4);
/* A breach of a rule by `f`, about `subject`, which must not hold numbers that a rewrite moves. */
void exti__macho_broken(struct macho_check *c, const struct macho_file *f, uint64_t at,
                        const char *subject, const char *fmt, ...) EXTI_PRINTF(5, 6);
/* Whether dyld applies to `f` a rule that it has for files linked against that SDK of macOS. */
bool exti__macho_gate(const struct macho_file *f, uint32_t sdk);
const char *exti__macho_piece_name(enum macho_piece_kind kind);
/* Both files have this piece, byte for byte, or neither has it. */
bool exti__macho_same_piece(const struct macho_check *c, enum macho_piece_kind kind);
/* Whether a rule about `f` need not look at `kind`: it is the original's, and so are all faults. */
bool exti__macho_settled(const struct macho_check *c, const struct macho_file *f,
                         enum macho_piece_kind kind);
uint32_t exti__macho_u32(const uint8_t *p);
uint64_t exti__macho_u64(const uint8_t *p);
uint16_t exti__macho_u16(const uint8_t *p);

/* ---- macho_check_fat.c */
int exti__macho_check_fat(struct exti_span before, struct exti_span after, struct macho_check *c,
                          int (*slice)(struct macho_check *c, struct exti_span before,
                                       struct exti_span after, struct exti_error *err),
                          struct exti_error *err);

/* ---- macho_check_command.c: dyld's rules for load commands */
int exti__macho_rule_identity(struct macho_check *c, const struct macho_file *f,
                              struct exti_error *err);
int exti__macho_rule_dylibs(struct macho_check *c, const struct macho_file *f,
                            struct exti_error *err);
int exti__macho_rule_rpaths(struct macho_check *c, const struct macho_file *f,
                            struct exti_error *err);

/* ---- macho_check_segment.c */
int exti__macho_rule_segments(struct macho_check *c, const struct macho_file *f,
                              struct exti_error *err);
int exti__macho_rule_sections(struct macho_check *c, const struct macho_file *f,
                              struct exti_error *err);

/* ---- macho_check_linkedit.c */
int exti__macho_rule_blobs(struct macho_check *c, const struct macho_file *f,
                           struct exti_error *err);
int exti__macho_rule_order(struct macho_check *c, const struct macho_file *f,
                           struct exti_error *err);
int exti__macho_rule_symbols(struct macho_check *c, const struct macho_file *f,
                             struct exti_error *err);

/* ---- macho_check_bind.c */
/* Runs an opcode stream as dyld does and adds what it writes to; breaches of dyld's rules are
 * reported and the rest of that stream is left. */
int exti__macho_slots(struct macho_check *c, const struct macho_file *f, enum macho_stream stream,
                      struct macho_slots *out, struct exti_error *err);
int exti__macho_slot_add(struct macho_slots *list, struct macho_slot s, struct exti_error *err);
/* By address, then as dyld comes to them. */
void exti__macho_slots_sort(struct macho_slots *list);
void exti__macho_slots_free(struct macho_slots *list);
int exti__macho_rule_opcodes(struct macho_check *c, const struct macho_file *f,
                             struct exti_error *err);

/* ---- macho_check_chain.c */
/* Reads the tables; a breach of dyld's rules is reported and leaves *ok false. */
int exti__macho_chain_open(struct macho_check *c, const struct macho_file *f,
                           struct macho_chain_table *t, bool *ok, struct exti_error *err);
void exti__macho_chain_close(struct macho_chain_table *t);
/* Adds every slot of the chains; those of rebases to `words`, too, if given. */
int exti__macho_chain_walk(struct macho_check *c, const struct macho_file *f,
                           const struct macho_chain_table *t, struct macho_words *words,
                           struct exti_error *err);
int exti__macho_rule_chains(struct macho_check *c, const struct macho_file *f,
                            struct exti_error *err);

/* ---- macho_check_trie.c */
/* Adds the file's exports, from its trie or, without one, its symbol table. */
int exti__macho_exports(struct macho_check *c, const struct macho_file *f,
                        struct macho_exports *out, struct exti_error *err);
void exti__macho_exports_sort(struct macho_exports *list);
const struct macho_exported *exti__macho_exports_find(const struct macho_exports *list,
                                                      const char *name);
void exti__macho_exports_free(struct macho_exports *list);
int exti__macho_rule_trie(struct macho_check *c, const struct macho_file *f,
                          struct exti_error *err);
int exti__macho_step_exports(struct macho_check *c, struct exti_error *err);

/* ---- macho_check_sign.c */
int exti__macho_rule_signature(struct macho_check *c, const struct macho_file *f,
                               struct exti_error *err);
int exti__macho_step_signature(struct macho_check *c, struct exti_error *err);

/* ---- macho_check_expect.c */
int exti__macho_expect(struct macho_check *c, struct exti_error *err);
void exti__macho_expect_free(struct macho_expect *e);
/* dyld gives a file without libraries libSystem, as number 1. */
size_t exti__macho_most_ordinal(const struct macho_file *f);
/* The name of the library that `ordinal` means; NULL: none of the list. */
const char *exti__macho_library_of(const struct macho_file *f, int32_t ordinal);
/* Whether a reference to `symbol` with ordinal `was` in the original may have `now` in the copy. */
int exti__macho_follows(struct macho_check *c, const char *symbol, int32_t was, int32_t now,
                        bool *ok, struct exti_error *err);
/* Whether the original itself defines `symbol` for others to find. */
int exti__macho_defines(struct macho_check *c, const char *symbol, bool *out,
                        struct exti_error *err);

/* ---- macho_check_edit.c: header and load commands */
int exti__macho_step_header(struct macho_check *c, struct exti_error *err);
int exti__macho_step_commands(struct macho_check *c, struct exti_error *err);
int exti__macho_step_id(struct macho_check *c, struct exti_error *err);
int exti__macho_step_needed(struct macho_check *c, struct exti_error *err);
int exti__macho_step_rpaths(struct macho_check *c, struct exti_error *err);

/* ---- macho_check_ref.c: what dyld binds */
int exti__macho_step_opcodes(struct macho_check *c, struct exti_error *err);
int exti__macho_step_imports(struct macho_check *c, struct exti_error *err);

/* What is bound eagerly and lazily, sorted. */
int exti__macho_bound_slots(struct macho_check *c, const struct macho_file *f,
                            struct macho_slots *out, struct exti_error *err);

/* ---- macho_check_weak.c */
/* Whether weak look-ups of `symbol` leave the process's one definition for `target`, a library
 * of the copy or SELF: 0 no, 1 they may, 2 they must. */
int exti__macho_weak_target(struct macho_check *c, const char *symbol, int *how, int32_t *target,
                            struct exti_error *err);
/* The slots, by address as in the original, that the copy's weak stream does not bind any more. */
int exti__macho_weak_dropped(struct macho_check *c, struct macho_slots *out,
                             struct exti_error *err);
int exti__macho_step_weak(struct macho_check *c, struct exti_error *err);
/* The last one at that address of a sorted list, or NULL. */
const struct macho_slot *exti__macho_slot_find(const struct macho_slots *list, uint64_t at);

/* ---- macho_check_table.c: the rest of __LINKEDIT */
int exti__macho_step_symbols(struct macho_check *c, struct exti_error *err);
int exti__macho_step_starts(struct macho_check *c, struct exti_error *err);
int exti__macho_step_data_in_code(struct macho_check *c, struct exti_error *err);
int exti__macho_step_pieces(struct macho_check *c, struct exti_error *err);

/* ---- macho_check_word.c: where addresses stand in the original's segments */
int exti__macho_words(struct macho_check *c, struct macho_words *out, struct exti_error *err);
int exti__macho_word_add(struct macho_words *list, uint64_t at, uint8_t size,
                         struct exti_error *err);

/* ---- macho_check_bytes.c */
int exti__macho_step_bytes(struct macho_check *c, struct exti_error *err);
int exti__macho_step_room(struct macho_check *c, struct exti_error *err);

#endif
