/* Shows a context the memory of others. */
#ifndef RUNTIME_EMBED_EXPORTER_H
#define RUNTIME_EMBED_EXPORTER_H

#include "runtime/embed/buffer.h"

/* Returns a new memoryview of the buffer's memory, or NULL with an exception set.  The thread has
 * the GIL. */
struct pyobj *extipy__exporter_view(struct extipy_ctx *c, struct extipy_buffer *b);

/* Returns a reference to the buffer that the memory lies in as a whole; NULL: it lies in none that
 * context was given lately. */
struct extipy_buffer *extipy__exporter_holding(struct extipy_ctx *c,
                                               const struct extipy_view *view);

/* Releases what memoryviews still hold that finalisation has not freed. */
void extipy__exporters_end(struct extipy_ctx *c);

#endif
