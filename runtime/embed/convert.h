/* Values to objects and back; the thread has the GIL. */
#ifndef RUNTIME_EMBED_CONVERT_H
#define RUNTIME_EMBED_CONVERT_H

#include "runtime/embed/values.h"

/* Returns a new reference, or NULL with an exception set. */
struct pyobj *extipy__to_python(struct extipy_ctx *c, const struct extipy_values *v, size_t number);

/* Adds the object to the set and returns its number, or 0 with an exception set. */
size_t extipy__from_python(struct extipy_ctx *c, struct extipy_values *v, struct pyobj *object);

#endif
