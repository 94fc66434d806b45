/* The module `extisolate`, which tells Python code about its context. */
#ifndef RUNTIME_MODULE_H
#define RUNTIME_MODULE_H

#include "runtime/pyapi.h"

/* Makes it, with the context's number, how many there are, and its name.  The thread has the
 * GIL. */
int pyrt_module_add(const struct pyrt_api *py, const struct exti_ctx *ctx, int index, int count,
                    struct exti_error *err);

#endif
