/* What store.c and store_open.c share.  The directory's lock is held where something is written. */
#ifndef LOADER_STORE_STORE_PRIV_H
#define LOADER_STORE_STORE_PRIV_H

#include "loader/store/edits.h"
#include "loader/store/store.h"

/* Lets the hook, if any, replace the proposed file name in `name`, and checks the answer. */
int exti__store_check_name(const struct exti_store *s, const char *source, char *name,
                           struct exti_error *err);

/* The file name that the copy of `source` gets unless the hook has another. */
void exti__store_propose_name(const struct exti_store *s, const char *source, char *name);

/* Fills an entry that has its source's identity only: with its names and needs, then with the edits that
 * follow from those. */
int exti__store_entry(struct exti_store *s, const char *source, const char *name,
                      const struct exti_image *im, const char *first, bool root,
                      struct exti_entry *e, struct exti_error *err);
/* What quirks say of the file: EXTI_E_UNSUPPORTED if it is to have no copy, else the entry's renames. */
int exti__store_quirks(const struct exti_store *s, const char *source, const struct exti_image *im,
                       struct exti_entry *e, struct exti_error *err);
int exti__store_edits(const struct exti_edits *edits, struct exti_entry *e, struct exti_error *err);

/* JSON holds no other strings, and a manifest that names another file would be worse than none. */
int exti__store_check_utf8(const char *text, const char *what, struct exti_error *err);

/* ---- making copies: a plan, made under the store's mutex, that any thread can write ---- */

struct exti_making {
    struct exti_entry e;
    struct exti_edits edits; /* points into itself and into the other two */
    struct exti_image *im;
};

/* All of a copy but its bytes: `out` is zero-filled.  `first` and `root` as exti__store_needs. */
int exti__store_plan(struct exti_store *s, const char *first, const char *source, bool root,
                     bool symbolic, struct exti_making *out, struct exti_error *err);
void exti__making_clear(struct exti_making *m); /* but for its entry */

/* Whether the entry, or NULL, is of a copy that is up to date.  `first` as exti__store_node. */
bool exti__store_is_fresh(struct exti_store *s, const char *first, const struct exti_entry *e,
                          bool symbolic);

/* Files still to be looked at in a walk over what is needed; no recursion, as a manifest may tell of any
 * depth. */
struct exti_steps {
    struct exti_step {
        const char *source, *user; /* who needs it; NULL: who asked */
    } *steps;                      /* owned */
    size_t count, cap;
};

/* False when memory is out.  The strings are borrowed: those of an entry stay where they are until it is
 * made anew. */
bool exti__steps_push(struct exti_steps *p, const char *source, const char *user);
bool exti__steps_push_needs(struct exti_steps *p, const struct exti_entry *e);

/* Says who dragged a library in that cannot be copied. */
void exti__error_add_requester(const struct exti_step *at, struct exti_error *err);

/* The caller knows the file `real` by the name it gave. */
void exti__error_name_original(const char *original, const char *real, struct exti_error *err);

/* The pristine file behind `path`: itself, or, when it is a copy in some context directory, what it
 * was made from.  Copies are never copied again.  Takes the store's mutex. */
int exti__store_trace(struct exti_store *s, const char *path, char **out, struct exti_error *err);

/* For many files, of which those of a folder come one after another: that folder, if it is no context's,
 * as it was given and without links.  Zeroed to begin with. */
struct exti_tracer {
    char *given, *real; /* owned; each ends in a slash */
};
int exti__store_trace_next(struct exti_store *s, struct exti_tracer *t, const char *path,
                           char **out, struct exti_error *err);
void exti__tracer_end(struct exti_tracer *t);

/* The entry's paths, to live as long as the store. */
int exti__store_export_paths(struct exti_store *s, const struct exti_entry *e, const char **copy,
                             const char **source, struct exti_error *err);

/* Makes the copy of `source` and of what it drags in, where they are not up to date.  Of the API library
 * the latter only. */
int exti__store_ensure(struct exti_store *s, const char *source, bool symbolic,
                       struct exti_error *err);

/* Whether two looks at a file saw the same; but for its device, whose number changes from boot to boot. */
bool exti__same_version(const struct exti_file_id *a, const struct exti_file_id *b);

/* ---- store_needs.c ---- */

/* Sets the entry's needs and takes_api.  `first` as exti__store_node; `root`: not because another needs
 * it. */
int exti__store_needs(struct exti_store *s, const char *first, const char *source, bool root,
                      struct exti_entry *e, struct exti_error *err);

/* The file that drags `source` in, or that drags in what does: the first of the manifest's; `source` itself
 * if nothing does. */
const char *exti__store_first_user(const struct exti_store *s, const char *source);

/* Whether the entry's file gets a library for its need `name` now. */
bool exti__store_finds_need(struct exti_store *s, const char *first, const struct exti_entry *e,
                            const char *name);

/* What look-ups for files of a format go by that may change from process to process; exti__free it. */
int exti__store_search_key(enum exti_file_format format, char **out, struct exti_error *err);

/* Whether copies that need the library `path` are to get one of the context's; if not, why.  Takes no
 * lock. */
int exti__store_classify(struct exti_store *s, const char *path, bool *isolated, char *why,
                         size_t cap, struct exti_error *err);

/* The file's node in the store's graph, which is begun anew when what it read there has changed.  `first`,
 * if it is not `source` itself, is in the graph before: what drags `source` in, and has a say in where
 * the libraries that it needs are found. */
int exti__store_node(struct exti_store *s, const char *first, const char *source, bool root,
                     size_t *node, struct exti_error *err);

/* Why the library is isolated or shared, for people. */
void exti__store_describe(const struct exti_store *s, size_t node, char *out, size_t cap);

void exti__store_drop_graph(struct exti_store *s);

struct exti_target exti__target_of(const struct exti_image *im);

/* Writes the copy unless it is there, the same byte for byte: a copy that another process has loaded
 * must keep its inode.  Completes the entry.  os_error ESTALE when the source is no longer what the
 * entry says, as then the edits are not for it. */
int exti__store_write(const struct exti_store *s, const struct exti_image *im,
                      const struct exti_edits *edits, struct exti_entry *e, struct exti_error *err);

/* Whether a power loss may have torn the copy: not within the boot that wrote it, as every reader
 * then sees the page cache. */
bool exti__store_may_be_torn(const struct exti_store *s, const struct exti_entry *e);

int exti__store_save(struct exti_store *s, struct exti_error *err);
int exti__store_save_if_due(struct exti_store *s, struct exti_error *err);

/* Takes in what other processes have recorded since. */
int exti__store_reload(struct exti_store *s, struct exti_error *err);

/* The one long-lived string equal to `string`, which is taken over; NULL when memory is out. */
const char *exti__store_intern(struct exti_store *s, char *string);

/* The context's name as the lock file of `dir` tells it, into EXTI_NAME_MAX+1 bytes. */
bool exti__store_locked_name(const char *dir, char *name);

/* EXTI_E_CHECK with os_error ENOENT when the directory is no more. */
int exti__store_lock(const struct exti_store *s, struct exti_lock *lock, struct exti_error *err);

#endif
