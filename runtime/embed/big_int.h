/* Integers of any size as bytes: two's complement, the lowest byte first. */
#ifndef RUNTIME_EMBED_BIG_INT_H
#define RUNTIME_EMBED_BIG_INT_H

#include "runtime/embed/context.h"

/* Both return NULL with an exception set on failure. */
struct pyobj *extipy__big_int_new(const struct extipy_ctx *c, const char *bytes, size_t length);
struct pyobj *extipy__big_int_bytes(const struct extipy_ctx *c, struct pyobj *integer);

#endif
