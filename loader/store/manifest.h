/* manifest.json: what a context directory says of itself. */
#ifndef LOADER_STORE_MANIFEST_H
#define LOADER_STORE_MANIFEST_H

#include <stdbool.h>

#include "base/os/fs.h"
#include "loader/image/machines.h"
#include "loader/resolve/search.h"
#include "loader/store/copy_names.h"

#define EXTI_MANIFEST_FILE "manifest.json"
#define EXTI_LOCK_FILE ".lock"
#define EXTI_BOOT_MAX 40

/* A needed library other than the API, and what became of it.  All strings are owned. */
struct exti_need {
    char *name;    /* as the source names it */
    char *to;      /* as the copy does; NULL: the same */
    char *file;    /* which that is, without symbolic links; NULL: there is none */
    bool isolated; /* `file` has a copy in the context too, and `to` is that one's name */
    bool optional; /* the copy loads without it */
};

/* What one open store notes on an entry. */
struct exti_entry_marks {
    unsigned walk;  /* the store's latest walk that came by: see struct exti_store */
    size_t index;   /* what that walk numbers the entry */
    size_t batch;   /* the latest exti__store_copy_many that has seen to the copy */
    bool made;      /* this store made the copy */
    bool unwritten; /* the copy is planned, not written, so the entry is not for the disk yet */
};

/* One copy.  All strings are owned. */
struct exti_entry {
    char *source;           /* absolute, without symbolic links */
    struct exti_file_id id; /* the source as it was when the copy was made; no device number, as
                             * those change from boot to boot */
    char *build_id;         /* of the source, or NULL */
    char *source_name;      /* the source's own id (SONAME), or NULL */
    char *copy;             /* file name in the directory */
    uint64_t copy_size;
    int64_t copy_mtime_ns;    /* no inode: a folder may be copied with its files' times */
    unsigned generation;      /* of the API copy that this one refers to */
    unsigned resolution;      /* of its needs: see struct exti_manifest */
    bool symbolic;            /* bound to its own symbols first: the host has some of them too */
    bool takes_api;           /* has the API copy among its needed libraries */
    bool synced;              /* the copy was fsynced */
    char boot[EXTI_BOOT_MAX]; /* when it was written: see exti__fs_boot */
    struct exti_need *needs;  /* owned */
    size_t need_count;
    char *renames; /* JSON object of symbols' names and new names, or NULL */
    char *edits;   /* JSON object */

    /* Not on disk by itself, but part of `edits`: what replaces python3.dll among the names of needed
     * libraries, the API copy or the context's copy of python3.dll.  NULL: the source needs no python3.dll. */
    char *stable_abi_copy;

    struct exti_entry_marks marks; /* not on disk */
};

/* How it is decided which needed libraries a context has copies of. */
struct exti_manifest_policy {
    enum exti_closure closure; /* EXTI_CLOSURE_DEFAULT in a manifest that has yet to get one */
    struct exti_rule *rules;   /* owned, with their globs */
    size_t rule_count;
};

/* What a file is, and what machine its code is for. */
struct exti_target {
    enum exti_file_format format;
    char machine[EXTI_MACHINES_MAX]; /* a universal file's with commas between */
    int bits;
    bool big_endian;
};

struct exti_manifest {
    char name[EXTI_NAME_MAX + 1];
    bool renamed;        /* API symbols have private names */
    unsigned generation; /* counts the API copies made; a new one makes every other copy stale */
    struct exti_manifest_policy policy;
    char *search;        /* owned; what of the system needed libraries were looked up by, or NULL */
    unsigned resolution; /* counts the changes to that; each makes all needs be looked up again */
    struct exti_entry api;
    struct exti_target target;  /* of the API library, and so of every copy */
    struct exti_entry *entries; /* sorted by source */
    size_t count, cap;
};

void exti__entry_clear(struct exti_entry *e);
void exti__needs_free(struct exti_need *needs, size_t count);
void exti__policy_clear(struct exti_manifest_policy *p);
void exti__manifest_clear(struct exti_manifest *m);

/* Reads the manifest of `dir`.  No file: EXTI_E_IO with ENOENT.  Damaged: EXTI_E_FORMAT.
 * Some other program's: EXTI_E_UNSUPPORTED. */
int exti__manifest_read(const char *dir, struct exti_manifest *out, struct exti_error *err);

/* Replaces the manifest of `dir` as a whole. */
int exti__manifest_write(const char *dir, const struct exti_manifest *m, bool sync,
                         struct exti_error *err);

/* EXTI_E_UNSUPPORTED unless `text`, NULL or `what` of some file, is UTF-8: JSON holds no other strings, and
 * a manifest that names another file would be worse than none. */
int exti__manifest_check_text(const char *text, const char *what, struct exti_error *err);

/* The entry of `source` (the API's included) or NULL; by the copy's file name likewise. */
struct exti_entry *exti__manifest_find(struct exti_manifest *m, const char *source);
const struct exti_entry *exti__manifest_find_copy(const struct exti_manifest *m, const char *copy);

/* Makes room, so that the next `more` calls of exti__manifest_put cannot fail. */
int exti__manifest_reserve(struct exti_manifest *m, size_t more, struct exti_error *err);

/* Takes the entry, not the API's, out of the list, into *out. */
void exti__manifest_take(struct exti_manifest *m, struct exti_entry *e, struct exti_entry *out);

/* Takes over `*e`, replacing the entry of the same source; `*e` is emptied. */
int exti__manifest_put(struct exti_manifest *m, struct exti_entry *e, struct exti_error *err);

#endif
