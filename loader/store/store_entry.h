/* The manifest's entry for one copy.  The mutex is held. */
#ifndef LOADER_STORE_STORE_ENTRY_H
#define LOADER_STORE_STORE_ENTRY_H

#include "loader/store/edits.h"
#include "loader/store/store_needs.h"

/* Fills an entry that has only its source's identity with the names, quirks and needs.  `name`
 * is the copy's.  On failure the entry keeps what it got: exti__entry_clear it. */
int exti__store_entry(struct exti_store *s, const struct exti_copy_request *r, const char *name,
                      const struct exti_image *im, struct exti_entry *e, struct exti_error *err);

/* Then with the edits that follow from those. */
int exti__store_edits(const struct exti_edits *edits, struct exti_entry *e, struct exti_error *err);

/* What quirks say of the file: EXTI_E_UNSUPPORTED if they refuse it a copy, else the entry's
 * renames. */
int exti__store_quirks(const struct exti_store *s, const char *source, const struct exti_image *im,
                       struct exti_entry *e, struct exti_error *err);

#endif
