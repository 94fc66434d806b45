/* What of the program's may take over references of copies: it is looked at first. */
#ifndef LOADER_LOAD_INTERPOSED_H
#define LOADER_LOAD_INTERPOSED_H

#include <stdbool.h>

#include "loader/track/module.h"

/* Whether a library that is dragged in would lose a symbol of its own to the process.  Weak ones do not
 * matter: those are C++'s, which the copies that are loaded together have in common.  Asks the system's loader. */
bool exti__is_interposed(const struct exti_image *im);

/* Whether it is a function that takes or gives back memory.  Who puts one before the C library's means the
 * whole process. */
bool exti__is_allocation_function(const char *symbol);

/* Binds those new copies of an opening to themselves that would be captured, before they are opened. */
int exti__interposed_make_symbolic(struct exti_ctx *ctx, const struct exti_opening *o,
                                   struct exti_error *err);

#endif
