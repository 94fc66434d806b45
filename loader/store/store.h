/* The room for the context directory: which copies there are, what each is called, how it is made
 * and whether it is still right.
 *
 * The manifest (manifest.h) is the directory's own record.  A copy is planned (store_make.h: its
 * name, its needs, its edits), written, and only then recorded.  Writers of several processes
 * take turns by the lock file; threads of this process by the store's mutex.
 *
 * The room uses resolve/ to find libraries, rewrite/ and image/ for the files themselves, and
 * asks process/ which symbols this process exports.  Called by context/, load/, interpose/ and,
 * in dir.c, by the public functions on directories (exti_dir_*). */
#ifndef LOADER_STORE_STORE_H
#define LOADER_STORE_STORE_H

#include <pthread.h>
#include <stdbool.h>

#include "base/os/fs_id.h"
#include "loader/image/image_cache.h"
#include "loader/store/manifest.h"
#include "loader/store/private_symbols.h"

struct exti_store {
    char *dir;     /* absolute */
    bool one_shot; /* the directory is the context's alone, and nothing is recorded in it */
    bool stays;    /* exti__store_close leaves it even so */
    bool sync, copy_only, trust_dir;
    bool withhold; /* ELF, Mach-O: copies are for the library's own loader: see EXTI_RW_WITHHOLD */
    bool lean;     /* copies may leave out what their loader maps from the original */
    bool hashes;   /* copies that are used again are hashed */
    bool adapts;   /* copies that others have made are made again for what the program exports */
    bool created, made_folder; /* exti__store_open made the context; its folder */
    unsigned forks;            /* that had begun before */
    char boot[EXTI_BOOT_MAX];
    bool (*is_copy)(uintptr_t address); /* in memory, of any context */
    int (*copy_name)(void *user, const char *original, char *out, size_t cap); /* hook or NULL */
    void *user;
    const struct exti_quirks *quirks; /* or NULL */

    pthread_mutex_t lock; /* guards all below */
    struct exti_manifest manifest;
    struct exti_file_id manifest_id;     /* of manifest.json as last read or written */
    struct exti_private_symbols renames; /* empty unless manifest.renamed */
    struct exti_closure_graph *graph;    /* libraries found so far; NULL: none yet */
    struct exti_image_cache images;      /* files whose copies are being planned */
    unsigned walk;                       /* number of the latest walk over entries */
    size_t batch;                        /* number of the latest exti__store_copy_many */
    bool drop_unused; /* EXTI_CTX_DROP_UNUSED, and nobody asked for the API copy */
    bool dirty;       /* the manifest has entries that its file lacks */
    bool replaced;    /* one of these is of a copy that the file describes */
    int64_t saved_at_ns, save_cost_ns;
    void *strings; /* paths handed out: a tree of tsearch(3) */
};

/* The one long-lived string equal to `string`, which is taken over.  NULL when memory is out, or
 * when `string` is NULL. */
const char *exti__store_intern(struct exti_store *s, char *string);

/* Absolute paths of the entry's copy and source; they live as long as the store.  The mutex is
 * held. */
int exti__store_export_paths(struct exti_store *s, const struct exti_entry *e, const char **copy,
                             const char **source, struct exti_error *err);

/* The same of the API library.  Takes the mutex. */
int exti__store_api(struct exti_store *s, const char **copy, const char **source,
                    struct exti_error *err);

/* Frees what the store owns in memory; its directory stays. */
void exti__store_free(struct exti_store *s);

#endif
