/* Queues of values between interpreters.  As of struct pkg_core. */
#ifndef BINDINGS_PYTHON_EXT_QUEUES_H
#define BINDINGS_PYTHON_EXT_QUEUES_H

#include "bindings/python/ext/core.h"

int pkg_queue_new(uint64_t *id, size_t most);
int pkg_queue_free(uint64_t id);
int pkg_queue_put(uint64_t id, const struct pkg_message *message, int64_t nanoseconds);
int pkg_queue_get(uint64_t id, struct pkg_message *message, int64_t nanoseconds);
int pkg_queue_count(uint64_t id, size_t *count, size_t *most);
void pkg_queue_forked(void);

#endif
