/* Describes exceptions; the thread has the GIL. */
#ifndef RUNTIME_EMBED_EXCEPTION_H
#define RUNTIME_EMBED_EXCEPTION_H

#include "runtime/embed/object.h"

/* Clears the exception that is set, fills in `err`, and *raised unless that is NULL.  Returns
 * EXTIPY_E_RAISED, or EXTI_E_NOMEM if *raised cannot be made. */
int extipy__exception_take(struct extipy_ctx *c, struct extipy_exception **raised,
                           struct exti_error *err);

#endif
