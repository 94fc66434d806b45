/* Files that come and go in a context directory, and its removal. */
#ifndef LOADER_STORE_STORE_REMOVE_H
#define LOADER_STORE_STORE_REMOVE_H

#include "base/os/fs_lock.h"
#include "loader/store/manifest.h"

/* Removes what `m` describes from its directory: copies, manifest, lock, temporary files; and, with
 * `folder`, the directory itself if that empties it. */
int exti__store_remove(const char *dir, const struct exti_manifest *m, bool folder,
                       struct exti_error *err);

/* Unlocks a directory whose files have been removed, then removes the folder.  Windows keeps the
 * name of an open file, as of the lock, until it is closed, so the folder can go only then. */
void exti__store_unlock_removed(const char *dir, struct exti_lock *lock);

/* Removes one file of `dir`, a real path.  Needs no memory, so that nothing is left behind where
 * memory was what failed. */
int exti__store_remove_file(const char *dir, const char *name, struct exti_error *err);

/* Removes the temporary files of killed processes.  Ours are written under the lock alone, which
 * the caller holds. */
void exti__store_sweep(const char *dir);

/* Whether a file of this name in a context directory is the store's own, but no copy. */
bool exti__store_owns(const char *name);

/* Counts the files in `dir` that are neither the store's own nor, by their names, copies of the
 * context `context`, "" for no context. */
int exti__store_count_others(const char *dir, const char *context, size_t *count,
                             struct exti_error *err);

#endif
