/* The manifest in memory against the one on disk, which other processes write too.  The mutex is
 * held and the directory locked, but for exti__store_flush. */
#ifndef LOADER_STORE_STORE_SAVE_H
#define LOADER_STORE_STORE_SAVE_H

#include "loader/store/store.h"

/* Reads the manifest of the directory; refuses one that others can change, unless all in the
 * directory is to be trusted. */
int exti__store_load_manifest(const struct exti_store *s, struct exti_manifest *out,
                              struct exti_error *err);

int exti__store_save(struct exti_store *s, struct exti_error *err);

/* Saves if there is something to save and the last time is long enough ago. */
int exti__store_save_if_due(struct exti_store *s, struct exti_error *err);

/* Ends a call that has made copies, with the result `rc`, while the directory is still locked:
 * saves if due, after a failure too if copies have been replaced before it. */
int exti__store_save_made(struct exti_store *s, int rc, struct exti_error *err);

/* Takes in what other processes have recorded since.  EXTI_E_CHECK when the directory was
 * cleaned, damaged or given a new API library meanwhile. */
int exti__store_reload(struct exti_store *s, struct exti_error *err);

/* Writes what the manifest's file lacks.  Takes mutex and lock. */
int exti__store_flush(struct exti_store *s, struct exti_error *err);

#endif
