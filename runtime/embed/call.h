/* The parts of a call. */
#ifndef RUNTIME_EMBED_CALL_H
#define RUNTIME_EMBED_CALL_H

#include "runtime/embed/context.h"

/* Reads what the caller gave, and checks it. */
int extipy__call_read(struct extipy_call *out, const struct extipy_ctx *c,
                      const struct extipy_call *given, struct exti_error *err);

/* Calls; the thread is inside.  Returns the result, or NULL with an exception set; or *ended is
 * set, as by extipy__exiting_run. */
struct pyobj *extipy__call_inside(struct extipy_ctx *c, const struct extipy_call *call, int *ended);

/* Takes the exception that is set: EXTIPY_E_RAISED, or EXTIPY_E_EXITED if the context has ended. */
int extipy__call_raised(struct extipy_ctx *c, struct extipy_exception **raised,
                        struct exti_error *err);

/* Makes values or an exception of what extipy__call_inside returned, and consumes that.  `result`
 * and `raised` may be NULL. */
int extipy__call_keep(struct extipy_ctx *c, int stay, struct pyobj *object,
                      struct extipy_values **result, struct extipy_exception **raised,
                      struct exti_error *err);

#endif
