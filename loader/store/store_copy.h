/* Copying into a context directory, as callers ask for it.  Takes mutex and lock. */
#ifndef LOADER_STORE_STORE_COPY_H
#define LOADER_STORE_STORE_COPY_H

#include "loader/store/store.h"

/* Brings the copy of `original` up to date, and those of its dependencies.  *copy and *source
 * are absolute and live as long as the store.  With `symbolic` the copy binds to its own symbols
 * first; a copy that already does so is kept even when that is not asked for.  For the API
 * library, answers with its copy as it is. */
int exti__store_copy(struct exti_store *s, const char *original, bool symbolic, const char **copy,
                     const char **source, struct exti_error *err);

/* Makes the copy of `source`, which some file needs, anew so that it binds to its own symbols
 * first, unless it does so already. */
int exti__store_make_symbolic(struct exti_store *s, const char *source, struct exti_error *err);

/* Makes the copy of `source`, which some file needs, anew so that it leaves out nothing, unless it
 * does so already. */
int exti__store_make_full(struct exti_store *s, const char *source, struct exti_error *err);

/* exti__store_copy of many files, not symbolic, by several threads; see exti_copy_many. */
int exti__store_copy_many(struct exti_store *s, const char *const *originals, size_t count,
                          const struct exti_copy_opts *opts, struct exti_error *err);

#endif
