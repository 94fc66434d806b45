/* The manifest in memory against the one on disk, which other processes write too.  The mutex is
 * held and the directory locked, but for exti__store_flush. */
#ifndef LOADER_STORE_STORE_SAVE_H
#define LOADER_STORE_STORE_SAVE_H

#include "loader/store/store.h"

int exti__store_save(struct exti_store *s, struct exti_error *err);

/* Saves if there is something to save and the last time is long enough ago. */
int exti__store_save_if_due(struct exti_store *s, struct exti_error *err);

/* Takes in what other processes have recorded since.  EXTI_E_CHECK when the directory was
 * cleaned, damaged or given a new API library meanwhile. */
int exti__store_reload(struct exti_store *s, struct exti_error *err);

/* Writes what the manifest's file lacks.  Takes mutex and lock. */
int exti__store_flush(struct exti_store *s, struct exti_error *err);

#endif
