/* The API library's copy, which every other copy refers to. */
#ifndef LOADER_STORE_STORE_API_H
#define LOADER_STORE_STORE_API_H

#include "loader/store/store_open.h"

/* The API library's path without symbolic links: `wanted`, or NULL for the manifest's.
 * exti__free it. EXTI_E_ARG when there is neither, or when the two differ. */
int exti__store_choose_api(struct exti_store *s, const char *wanted, char **source,
                           struct exti_error *err);

/* Brings the copy of the API library `source` up to date, and those of its dependencies; chooses
 * or checks the policy on the way. */
int exti__store_ensure_api(struct exti_store *s, const char *source,
                           const struct exti_store_opts *opts, struct exti_error *err);

#endif
