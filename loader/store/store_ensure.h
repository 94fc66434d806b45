/* A copy together with the copies of all that its source drags in.  The mutex is held. */
#ifndef LOADER_STORE_STORE_ENSURE_H
#define LOADER_STORE_STORE_ENSURE_H

#include "loader/store/store.h"

/* Whether the copy of `source` is up to date, and all that it drags in. */
bool exti__store_is_whole(struct exti_store *s, const char *source, bool symbolic);

/* Makes those copies that are not up to date.  The API library's own copy is left as it is.  The
 * directory is locked. */
int exti__store_ensure(struct exti_store *s, const char *source, bool symbolic,
                       struct exti_error *err);

#endif
