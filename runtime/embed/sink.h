/* A descriptor that contexts write lines to. */
#ifndef RUNTIME_EMBED_SINK_H
#define RUNTIME_EMBED_SINK_H

#include <stddef.h>

/* One of them for each number, with a count of those that opened it. */
struct extipy_sink;

/* NULL: no memory. */
struct extipy_sink *extipy__sink_open(int fd);
void extipy__sink_close(struct extipy_sink *sink); /* NULL ok */

/* Writes it all, and nothing of others between its parts.  Returns 0 or an errno. */
int extipy__sink_write(struct extipy_sink *sink, const char *bytes, size_t length);

#endif
