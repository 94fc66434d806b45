/* The check of one slice.
 *
 * check/ judges rewritten copies.  It uses read/ and base/; macho_check.c is its top, called
 * through macho_format.c.  The common reader opens both files.  What a rewrite changes (binding
 * opcodes, chains, imports, the exports trie, signatures, unwind tables) is decoded here a second
 * time, so that a fault in the rewriter's decoders is not hidden by the same fault here.
 *
 * A rule is about one file, original or copy.  A step compares the copy with the original. */
#ifndef MACHO_CHECK_MACHO_CHECK_STATE_H
#define MACHO_CHECK_MACHO_CHECK_STATE_H

#include "base/buf.h"
#include "base/findings.h"
#include "base/format.h"
#include "macho/read/macho_file.h"

#define MACHO_NO_DYLIB SIZE_MAX

/* A library that the copy must need. */
struct macho_want {
    const char *name;
    size_t from; /* index of the original's library that it replaces, or MACHO_NO_DYLIB */
    uint32_t cmd;
};

/* The libraries and search paths that the requested edits lead to. */
struct macho_expect {
    const char *id;
    struct macho_want *needed; /* owned */
    const char **named;  /* owned; the new name of each library of the original, NULL: removed */
    const char **rpaths; /* owned; without duplicates */
    char **strings;      /* owned, as are its elements: names that were composed */
    size_t needed_count, rpath_count, string_count;
    int32_t bind_ordinal; /* of the library that flat references are bound to */
};

struct macho_exported {
    size_t name;      /* offset in names.p */
    const char *text; /* the name; set by exti__macho_exports_sort */
    uint64_t flags, address, other;
    const char *import_name;
};
/* Sorted by name. */
struct macho_exports {
    struct macho_exported *v;
    size_t n, cap;
    struct exti_buf names;
};

/* An undefined symbol and the ordinal of the library that it was linked against. */
struct macho_linked {
    const char *name;
    uint32_t library;
};

struct macho_check {
    struct macho_file before, after;
    const struct exti_rewrite_opts *opts; /* NULL: any difference that a copy may have */
    const struct exti_plan *plan;         /* NULL also for a slice of a universal file */
    const struct exti_span *bind;         /* whole files */
    size_t bind_count;
    uint64_t shift;             /* how far everything after the header moved */
    bool same_dylibs;           /* no ordinal changes its meaning */
    bool withheld;              /* the copy's constructors must be withheld from dyld */
    struct macho_expect expect; /* meaningful with opts */

    /* Computed when first needed, by macho_check_follow.c. */
    bool own_known, provided_known, linked_known;
    struct macho_exports own;      /* the original's exports */
    struct macho_exports provided; /* the exports of `bind` */
    struct macho_linked *linked;   /* owned; by name */
    size_t linked_count;

    struct exti_findings judge;
};

#endif
