/* The module `extisolate`, which tells Python code about its context. */
#ifndef RUNTIME_MODULE_H
#define RUNTIME_MODULE_H

#include "runtime/pyapi.h"

#define PYRT_MODULE_NAME "extisolate"

/* Makes it, with the context's number, how many there are, and its name.  The thread has the
 * GIL. */
int pyrt_module_add(const struct pyrt_api *py, const struct exti_ctx *ctx, int index, int count,
                    struct exti_error *err);

/* Gives these to a module.  -1 with an exception set. */
int pyrt_module_fill(const struct pyrt_api *py, struct pyobj *module, const struct exti_ctx *ctx,
                     int index, int count);

#endif
