/* Loading, as the public header promises it, after the argument checks: for context/ and for what
 * copies call. */
#ifndef LOADER_LOAD_LOAD_H
#define LOADER_LOAD_LOAD_H

#include "loader/track/module.h"

/* exti_api: opens the API library's copy on first use. */
int exti__api(struct exti_ctx *ctx, struct exti_module **out, struct exti_error *err);

/* exti_load. */
int exti__load(struct exti_ctx *ctx, const char *original, struct exti_module **out,
               struct exti_error *err);

/* exti_symbol. */
int exti__symbol(const struct exti_module *m, const char *name, void **out, struct exti_error *err);

#endif
