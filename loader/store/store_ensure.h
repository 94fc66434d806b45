/* A copy together with the copies of its source's dependencies.  The mutex is held. */
#ifndef LOADER_STORE_STORE_ENSURE_H
#define LOADER_STORE_STORE_ENSURE_H

#include "loader/store/store.h"

/* Whether the copy of `source` is up to date, and its dependencies' copies. */
bool exti__store_is_whole(struct exti_store *s, const char *source, bool symbolic);

/* Makes those copies that are not up to date.  The API library's own copy is left as it is.  The
 * directory is locked. */
int exti__store_ensure(struct exti_store *s, const char *source, bool symbolic,
                       struct exti_error *err);

#endif
