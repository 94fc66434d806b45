/* A context directory as something to copy into: finds, reuses, makes and replaces copies. */
#ifndef LOADER_STORE_STORE_H
#define LOADER_STORE_STORE_H

#include <pthread.h>
#include <stdbool.h>

#include "base/format.h"
#include "loader/image/image_cache.h"
#include "loader/store/manifest.h"
#include "loader/store/private_symbols.h"

struct exti_store {
    char *dir; /* absolute */
    bool one_shot, sync, drop_unused, copy_only;
    bool created, made_folder; /* by exti__store_open: the context, its folder */
    char boot[EXTI_BOOT_MAX];
    int (*copy_name)(void *user, const char *original, char *out, size_t cap); /* hook or NULL */
    void *user;
    const struct exti_quirks *quirks; /* or NULL */

    pthread_mutex_t lock; /* guards all below */
    struct exti_manifest manifest;
    struct exti_file_id manifest_id;     /* of manifest.json as last read or written */
    struct exti_private_symbols renames; /* empty unless manifest.renamed */
    struct exti_closure_graph
        *graph; /* what has been found to be needed by what; NULL: nothing yet */
    struct exti_image_cache images; /* of files of which copies are being planned */
    unsigned walk;                  /* the last one over entries */
    size_t batch;                   /* the last one of store_many.c */
    bool dirty;                     /* the manifest has entries that its file lacks */
    int64_t saved_at_ns, save_cost_ns;
    void *strings; /* paths handed out: a tree of tsearch(3) */
};

struct exti_store_opts {
    const char *dir, *name, *api_library; /* as in exti_ctx_opts */
    bool rename, sync, copy_only, drop_unused;
    enum exti_closure closure;
    const struct exti_rule *rules;
    size_t rule_count;
    const struct exti_quirks *quirks; /* NULL: none; outlive the store */
    int (*copy_name)(void *user, const char *original, char *out, size_t cap);
    void *user;
};

/* Opens or creates the directory and brings the API library's copy up to date. */
int exti__store_open(struct exti_store *s, const struct exti_store_opts *opts,
                     struct exti_error *err);

/* Brings the copy of `original` up to date, and those of what it drags in.  *copy and *source, both absolute, live as long as the
 * store.  With `symbolic` the copy binds to its own symbols first; a copy that already does so is
 * kept even when it is not asked for.  The API library's own copy is answered like any other. */
int exti__store_copy(struct exti_store *s, const char *original, bool symbolic, const char **copy,
                     const char **source, struct exti_error *err);

/* exti__store_copy of many, not symbolic, by several threads; see exti_copy_many. */
int exti__store_copy_many(struct exti_store *s, const char *const *originals, size_t count,
                          const struct exti_copy_opts *opts, struct exti_error *err);

/* What became of the libraries that the entries need, and `why` if asked for; see exti_ctx_libraries. */
int exti__store_libraries(struct exti_store *s, bool why,
                          int (*each)(void *user, const struct exti_library_info *info), void *user,
                          struct exti_error *err);

/* Makes the copy of `source` anew, which some file drags in, unless it binds to its own symbols first. */
int exti__store_make_symbolic(struct exti_store *s, const char *source, struct exti_error *err);

/* What opening a copy brings with it.  All strings live as long as the store. */
struct exti_dependency {
    const char *source, *copy;
    bool symbolic;
    size_t *
        needs; /* owned; indices into the set; first the `firm_count` without which it does not load */
    size_t need_count, firm_count;
    bool optional; /* the one asked about loads without it */
};
struct exti_dependency_set {
    struct exti_dependency
        *copies; /* owned; the one asked about first, users before what they need */
    size_t count, cap;
    const char **shared; /* owned; files that are not copied */
    size_t shared_count, shared_cap;
};

/* Of `source`, which has an up-to-date copy; or the API library. */
int exti__store_dependencies(struct exti_store *s, const char *source,
                             struct exti_dependency_set *out, struct exti_error *err);
void exti__dependencies_free(struct exti_dependency_set *set);

/* Whether a copy that opens the file `path` as it runs is to get one of the context's. */
int exti__store_is_isolated(struct exti_store *s, const char *path, bool *isolated,
                            struct exti_error *err);

/* The file that the system's loader gives the original `source` for the name `name`, as a path for
 * exti__free; *path is NULL if there is none. */
int exti__store_find_library(struct exti_store *s, const char *source, const char *name,
                             char **path, struct exti_error *err);

/* Whether some symbol that the file defines for itself would be captured by a global one of this
 * process's.  Asks the system's loader, so not with the store's lock held: its initialisers ask us. */
bool exti__store_is_interposed(const struct exti_store *s, const struct exti_image *im);

/* Absolute path of the API copy; lives as long as the store. */
int exti__store_api(struct exti_store *s, const char **copy, const char **source,
                    struct exti_error *err);

/* Writes what the manifest's file lacks. */
int exti__store_flush(struct exti_store *s, struct exti_error *err);

/* Flushes and frees; a one-shot directory is removed, with `drop_unused` one of our making that has
 * the API library's copy only. */
int exti__store_close(struct exti_store *s, struct exti_error *err);

/* Removes what `m` describes from its directory: copies, manifest, lock, temporary files; and, with
 * `folder`, the directory itself if that empties it. */
int exti__store_remove(const char *dir, const struct exti_manifest *m, bool folder,
                       struct exti_error *err);

/* Unlocks a directory whose files have been removed.  Where the system keeps an open file's name until it
 * is closed, as of the lock, the folder can go only then. */
void exti__store_unlock_removed(const char *dir, struct exti_lock *lock);

/* Whether a file of this name in a context directory is the store's own, but no copy. */
bool exti__store_owns(const char *name);

/* How the entry's copy and source look now. */
enum exti_copy_state exti__entry_state(const char *dir, const struct exti_manifest *m,
                                       const struct exti_entry *e);

#endif
