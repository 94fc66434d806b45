/* Shows a context the memory of others. */
#ifndef RUNTIME_EMBED_EXPORTER_H
#define RUNTIME_EMBED_EXPORTER_H

#include "runtime/embed/buffer.h"

/* Returns a new memoryview of the buffer's memory, or NULL with an exception set.  The thread has
 * the GIL. */
struct pyobj *extipy__exporter_view(struct extipy_ctx *c, struct extipy_buffer *b);

/* Releases what memoryviews still hold that finalisation has not freed. */
void extipy__exporters_end(struct extipy_ctx *c);

#endif
