/* What store.c and store_open.c share.  The directory's lock is held where something is written. */
#ifndef LOADER_STORE_PRIV_H
#define LOADER_STORE_PRIV_H

#include "loader/edits.h"
#include "loader/store.h"

/* Lets the hook, if any, replace the proposed file name in `name`, and checks the answer. */
int exti__store_name(const struct exti_store *s, const char *source, char *name,
                     struct exti_error *err);

/* The file name that the copy of `source` gets unless the hook has another. */
void exti__store_propose(const struct exti_store *s, const char *source, char *name);

/* Fills an entry that has its source's identity only: with its names and needs, then with the edits that
 * follow from those. */
int exti__store_entry(struct exti_store *s, const char *source, const char *name,
                      const struct exti_image *im, bool root, struct exti_entry *e,
                      struct exti_error *err);
/* What quirks say of the file: EXTI_E_UNSUPPORTED if it is to have no copy, else the entry's renames. */
int exti__store_quirks(const struct exti_store *s, const char *source, const struct exti_image *im,
                       struct exti_entry *e, struct exti_error *err);
int exti__store_edits(const struct exti_edits *edits, struct exti_entry *e, struct exti_error *err);

/* Makes the copy of `source` and of what it drags in, where they are not up to date.  Of the API library
 * the latter only. */
int exti__store_bring(struct exti_store *s, const char *source, bool symbolic,
                      struct exti_error *err);

/* Whether two looks at a file saw the same; but for its device, whose number changes from boot to boot. */
bool exti__same_version(const struct exti_file_id *a, const struct exti_file_id *b);

/* ---- store_needs.c ---- */

/* Sets the entry's needs and takes_api.  `root`: not because another needs it. */
int exti__store_needs(struct exti_store *s, const char *source, bool root, struct exti_entry *e,
                      struct exti_error *err);

/* What look-ups for files of a format go by that may change from process to process; exti__free it. */
int exti__store_search_key(const char *format, char **out, struct exti_error *err);

void exti__store_forget(struct exti_store *s);

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

/* The one long-lived string equal to `string`, which is taken over; NULL when memory is out. */
const char *exti__store_intern(struct exti_store *s, char *string);

/* The context's name as the lock file of `dir` tells it, into EXTI_NAME_MAX+1 bytes. */
bool exti__store_locked_name(const char *dir, char *name);

/* EXTI_E_CHECK with os_error ENOENT when the directory is no more. */
int exti__store_lock(const struct exti_store *s, struct exti_lock *lock, struct exti_error *err);

#endif
