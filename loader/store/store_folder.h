/* The folder of a context directory before and after there is a manifest in it. */
#ifndef LOADER_STORE_STORE_FOLDER_H
#define LOADER_STORE_STORE_FOLDER_H

#include "base/os/fs_lock.h"
#include "loader/store/store.h"

/* Makes the folder `dir`, NULL for a temporary one, and locks it.  Sets s->dir and
 * s->made_folder. */
int exti__store_make_folder(struct exti_store *s, const char *dir, struct exti_lock *lock,
                            struct exti_error *err);

/* Reads the manifest, or begins a context in a folder that has nothing of anyone else's.  `name`
 * is the context's wanted name, or NULL. */
int exti__store_read_manifest(struct exti_store *s, const char *name, struct exti_error *err);

/* Writes the context's name into the lock file. */
int exti__store_write_name(const struct exti_store *s, const struct exti_lock *lock,
                           struct exti_error *err);

/* Undoes the creation of a directory that could not be completed.  The lock is still held:
 * whoever takes it next may begin a context here. */
void exti__store_abandon(struct exti_store *s, const struct exti_lock *lock);

#endif
