/* Functions that the system's loader calls while it binds references (STT_GNU_IFUNC). */
#ifndef LOADER_LOAD_EARLY_CODE_H
#define LOADER_LOAD_EARLY_CODE_H

#include "loader/load/opening.h"

/* Before the opening's copies are opened: if a new one has such functions, which may look at the
 * others, makes the others full that are new. */
int exti__early_code_needs_full(struct exti_ctx *ctx, const struct exti_opening *o,
                                struct exti_error *err);

#endif
