/* manifest.json: the context directory's record of itself.  Not thread-safe: the store's mutex
 * guards its manifest. */
#ifndef LOADER_STORE_MANIFEST_H
#define LOADER_STORE_MANIFEST_H

#include <stdbool.h>

#include "base/os/fs_id.h"
#include "base/shareable.h"
#include "loader/image/machines.h"
#include "loader/resolve/search.h"
#include "loader/store/copy_names.h"

#define EXTI_MANIFEST_FILE "manifest.json"
#define EXTI_MANIFEST_FORMAT 5 /* 2 where no copy is lean */
#define EXTI_LOCK_FILE ".lock"
#define EXTI_BOOT_MAX 40
#define EXTI_HASH_MAX 65 /* SHA-256 as hex digits, and a NUL */

/* A library that a source needs, other than the API library, and what its copy needs instead.
 * All strings are owned. */
struct exti_need {
    char *name;    /* as the source names it */
    char *to;      /* as the copy names it; NULL: the same */
    char *file;    /* the library itself, without symbolic links; NULL: not found */
    bool isolated; /* `file` has a copy in the context too, named `to` */
    bool optional; /* the copy loads without it */
};

/* What one open store notes on an entry. */
struct exti_entry_marks {
    unsigned walk;    /* the store's latest walk that came by: see struct exti_store */
    size_t index;     /* what that walk numbers the entry */
    size_t batch;     /* the latest exti__store_copy_many that has seen to the copy */
    bool made;        /* this store made the copy */
    uint64_t pattern; /* the number of the pattern that it was made by; 0: by none */
    bool unwritten;   /* the copy is planned, not written, so the entry is not for the disk yet */
};

/* One copy.  All strings are owned. */
struct exti_entry {
    char *source; /* absolute, without symbolic links */
    /* The source's when the copy was made; without the device number, which may change with every
     * boot. */
    struct exti_file_id id;
    char *build_id;    /* of the source, or NULL */
    char *source_name; /* the source's own id (SONAME), or NULL */
    char *copy;        /* file name in the directory */
    /* The copy's after it was written or last hashed; inode 0: an earlier version has recorded only
     * size and mtime. */
    struct exti_file_id copy_id;
    char copy_hash[EXTI_HASH_MAX]; /* of all but what is left out; "": not hashed */
    struct exti_unread left_out;   /* a lean copy: what is to be mapped from its source, */
    struct exti_unread unloaded;   /* but for these parts, which no loader loads */
    unsigned generation;           /* the API copy's that this one refers to */
    unsigned resolution;           /* the manifest's when the needs were looked up */
    bool symbolic;            /* binds to its own symbols first: the host exports some of them */
    bool takes_api;           /* needs the API copy */
    bool withheld;            /* only the library's loader runs the copy's constructors */
    bool synced;              /* the copy was fsynced */
    char boot[EXTI_BOOT_MAX]; /* when it was written: see exti__fs_boot */
    struct exti_need *needs;  /* owned */
    size_t need_count;
    char *renames; /* JSON object of symbols' names and new names, or NULL */
    char *edits;   /* JSON object */

    /* Not on disk by itself, but part of `edits`: what replaces python3.dll among the names of
     * needed libraries, the API copy or the context's copy of python3.dll.  NULL: the source
     * needs no python3.dll. */
    char *stable_abi_copy;

    struct exti_entry_marks marks; /* not on disk */
};

/* Which needed libraries a context copies. */
struct exti_manifest_policy {
    enum exti_closure closure; /* EXTI_CLOSURE_DEFAULT: not chosen yet */
    struct exti_rule *rules;   /* owned, with their globs */
    size_t rule_count;
};

/* A file's format and the machine that its code is for. */
struct exti_target {
    enum exti_file_format format;
    char machine[EXTI_MACHINES_MAX]; /* a universal file's are separated by commas */
    int bits;
    bool big_endian;
};

struct exti_manifest {
    char name[EXTI_NAME_MAX + 1];
    bool renamed;        /* API symbols have private names */
    unsigned names;      /* which: the EXTI_PRIVATE_NAMES of the version that made the API copy */
    unsigned generation; /* counts the API copies made; each makes all older copies stale */
    struct exti_manifest_policy policy;
    char *search;        /* owned; settings of the system that look-ups depend on, or NULL */
    unsigned resolution; /* counts the changes of `search`; each makes all needs stale */
    struct exti_entry api;
    struct exti_target target;  /* the API library's, and so every copy's */
    struct exti_entry *entries; /* sorted by source */
    size_t count, cap;
};

void exti__entry_clear(struct exti_entry *e);
void exti__needs_free(struct exti_need *needs, size_t count);
void exti__policy_clear(struct exti_manifest_policy *p);
void exti__manifest_clear(struct exti_manifest *m);

/* "all", "api" or "none"; "" for EXTI_CLOSURE_DEFAULT. */
const char *exti__closure_name(enum exti_closure closure);

/* Reads the manifest of `dir`; exti__manifest_clear it.  No file: EXTI_E_IO with ENOENT.
 * Damaged: EXTI_E_FORMAT.  Made by a newer version or on another system: EXTI_E_UNSUPPORTED.
 * Another program's file: EXTI_E_ARG. */
int exti__manifest_read(const char *dir, struct exti_manifest *out, struct exti_error *err);

/* Likewise, for those who act on what it says.  EXTI_E_TRUST: it is a link, or others than this
 * user and root can change it. */
int exti__manifest_read_trusted(const char *dir, struct exti_manifest *out, struct exti_error *err);

/* Replaces the manifest of `dir` as a whole.  `sync`: also on the disk itself before it returns. */
int exti__manifest_write(const char *dir, const struct exti_manifest *m, bool sync,
                         struct exti_error *err);

/* EXTI_E_UNSUPPORTED unless `text`, NULL or `what` of some file, is UTF-8: JSON holds no other
 * strings, and a manifest that names another file would be worse than none. */
int exti__manifest_check_text(const char *text, const char *what, struct exti_error *err);

/* The entry (it may be the API's) with this source, or with this file name of its copy; NULL:
 * none.  It stays valid until the next call that adds, takes or reserves entries. */
struct exti_entry *exti__manifest_find(struct exti_manifest *m, const char *source);
const struct exti_entry *exti__manifest_find_copy(const struct exti_manifest *m, const char *copy);

/* Makes room, so that the next `more` calls of exti__manifest_put cannot fail. */
int exti__manifest_reserve(struct exti_manifest *m, size_t more, struct exti_error *err);

/* Moves the entry, which is not the API's, out of the list into *out. */
void exti__manifest_take(struct exti_manifest *m, struct exti_entry *e, struct exti_entry *out);

/* Moves *e into the list, in place of an entry with the same source, which is freed; *e is
 * emptied. */
int exti__manifest_put(struct exti_manifest *m, struct exti_entry *e, struct exti_error *err);

#endif
