/* sys.stdout and sys.stderr of a context, delivered to the program by lines. */
#ifndef RUNTIME_EMBED_OUTPUT_H
#define RUNTIME_EMBED_OUTPUT_H

#include "runtime/embed/context.h"

/* Replaces the streams that the options name, in an interpreter that has just been initialised; the
 * thread has the GIL. */
int extipy__output_begin(struct extipy_ctx *c, const struct extipy_opts *opts,
                         struct exti_error *err);

/* Delivers the lines that were begun.  When it returns, no callback runs any more, and none begins.
 * Once or more, on a thread without the GIL. */
void extipy__output_end(struct extipy_ctx *c);

#endif
