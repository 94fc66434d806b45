/* The libraries that a copy shares with the rest of the process. */
#ifndef LOADER_LOAD_SHARED_LIBRARIES_H
#define LOADER_LOAD_SHARED_LIBRARIES_H

#include "loader/store/store_dependencies.h"
#include "loader/track/context.h"
#include "loader/track/module.h"

/* Opens them one by one before the copy of `original`, whose dependencies are `set`, but for those
 * that the API library's copy holds as long as the context is there.  *list is for
 * exti__shared_close, after a failure too; it is NULL at first. */
int exti__shared_open(struct exti_ctx *ctx, const char *original,
                      const struct exti_dependency_set *set, struct exti_shared **list,
                      struct exti_error *err);
void exti__shared_close(struct exti_shared *list); /* NULL ok */

#endif
